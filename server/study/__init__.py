"""A study on disk: its settings, its items, and opening its folder."""
