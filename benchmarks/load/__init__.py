"""Many participants and readers of the monitor at once."""
