"""The report: a whole study as one page that needs nothing else."""
