"""Measurements that anyone can run again; they write their tables to docs/benchmarks."""
