"""All SQL of the project: one SQLite file per study, and the only modules that speak to it."""
