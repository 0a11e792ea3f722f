"""Counts and enumerations in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def many(count: int, singular: str, plural: str = "") -> str:
    """A count with its noun: `1 answer`, `2 answers`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def listed(parts: Sequence[str]) -> str:
    """An enumeration: `a, b and c`."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)
