"""Questions: what one is, and which are left to ask."""
