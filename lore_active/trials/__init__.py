"""Trials that carry more than one comparison: their likelihood, information and composition."""
