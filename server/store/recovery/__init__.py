"""Backups, rescue copies and salvage of a study's database."""
