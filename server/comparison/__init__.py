"""Comparison of LORE with other methods on the same cross-validation folds."""
