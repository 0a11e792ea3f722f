"""Versions: what the models were made with, and what wrote the report."""

from __future__ import annotations

from lore_active import __version__

LIBRARIES = ("Python", "NumPy", "SciPy", "numba")


def named(fingerprint: str) -> list[str]:
    """`lore-active 0.1`, `Python 3.11.2` …: the versions that a methods section names."""
    parts = [part.strip() for part in fingerprint.split(";")]
    found = [part for part in parts if part.split(" ")[0] in LIBRARIES]
    own = next((part for part in parts if part.startswith("lore-active ")), "")
    return [" ".join(own.split(" ")[:2]) or f"lore-active {__version__}", *found]
