"""Copies of a study's database, and reading damaged ones."""
