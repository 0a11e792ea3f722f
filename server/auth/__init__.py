"""Authentication: the experimenter's password, sessions and view-only links."""
