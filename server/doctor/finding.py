"""The result of a check: its level, what was found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """Result of one check; `advice` is empty if there is nothing to do."""

    check: str
    level: Level
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    """Report that a check passed."""
    return Finding(check, "ok", found)


def warning(check: str, found: str, advice: str) -> Finding:
    """Report that a study can run, but something may go wrong."""
    return Finding(check, "warning", found, advice)


def problem(check: str, found: str, advice: str) -> Finding:
    """Report that a study cannot run, or may lose data."""
    return Finding(check, "problem", found, advice)


def size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
