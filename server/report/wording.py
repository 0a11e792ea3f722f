"""Percentages and quotations as a paper writes them."""

from __future__ import annotations


def percent(share: float) -> str:
    """A percentage with one decimal: `78.0 %`."""
    return f"{100 * share:.1f} %"


def quoted(reason: str) -> str:
    """What an experimenter wrote, in quotation marks."""
    return f"“{reason.strip().rstrip('.')}”" if reason.strip() else "no reason given"
