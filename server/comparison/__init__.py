"""LORE beside other methods on the same cross-validation folds."""
