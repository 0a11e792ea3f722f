"""Estimators in the manner of scikit-learn: `LORE` and `LORECV`."""
