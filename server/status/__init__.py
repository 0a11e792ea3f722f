"""What a study holds and how it stands: counts, verdict, health."""
