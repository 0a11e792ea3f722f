"""Benchmarks beside other implementations: the settings of the LORE paper, Salmon, cblearn."""
