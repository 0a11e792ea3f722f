"""How many dimensions the answers support: cross-validation and marginal likelihood."""
