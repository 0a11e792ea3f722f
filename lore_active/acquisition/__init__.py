"""Which question to ask next: the acquisition model and the selectors."""
