"""Simulated participants and studies: for planning, benchmarks and comparisons."""
