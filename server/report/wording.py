"""Counts, percentages and enumerations as a paper writes them."""

from __future__ import annotations


def many(count: int, singular: str, plural: str = "") -> str:
    """A count with its noun: `1 person`, `2 people`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def percent(share: float) -> str:
    """A percentage with one decimal: `78.0 %`."""
    return f"{100 * share:.1f} %"


def listed(parts: list[str]) -> str:
    """An enumeration: `a, b and c`."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def quoted(reason: str) -> str:
    """What an experimenter wrote, in quotation marks."""
    return f"“{reason.strip().rstrip('.')}”" if reason.strip() else "no reason given"
