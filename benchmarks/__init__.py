"""Measurements that anyone can run again; they write their tables to docs/benchmarks."""

# Before a benchmark loads NumPy: measured is what the commands and the worker compute with.
import lore_active  # noqa: F401
