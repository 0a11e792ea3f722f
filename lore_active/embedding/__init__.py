"""Embeddings: the LORE fit, the MAP fit, and what can be computed from either."""
