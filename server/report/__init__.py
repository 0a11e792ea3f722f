"""The report: a whole study as one self-contained page."""
