"""Sampling of the posteriors behind the Bayes factor of a further dimension."""
