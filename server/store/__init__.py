"""All SQL of the project: one SQLite file per study, used only by these modules."""
