"""The table of participants: who they are, how far they are, how well they answer."""

from __future__ import annotations

from math import isfinite
from typing import Any

from server.counting import is_under_way, present
from server.monitoring.flags import statement
from server.monitoring.quality import Quality
from server.store.monitoring import Person


class Rows:
    """Rows of the table, made again only for whom something changed."""

    def __init__(self, idle_minutes: int) -> None:
        self._idle_minutes = idle_minutes
        self._made: dict[int, tuple[Person, Quality, bool, dict[str, Any]]] = {}

    def row(self, one: Person, quality: Quality, now: int) -> dict[str, Any]:
        """One participant's."""
        here = is_under_way(one, *present(now, self._idle_minutes))
        made = self._made.get(one.id)
        if made is None or made[:3] != (one, quality, here):
            made = (one, quality, here, _row(one, quality, here))
            self._made[one.id] = made
        return made[3]


def _row(one: Person, quality: Quality, here: bool) -> dict[str, Any]:
    return {
        "id": one.id,
        "external": one.external,
        "stage": one.stage,
        "here": here,
        "done": one.done,
        "trials": one.trials,
        "excluded": bool(one.excluded),
        "simulated": bool(one.simulated),
        "seen_at": one.seen_at,
        "catch": [quality.catch_right, quality.catches],
        "repeats": [quality.repeats_alike, quality.repeats],
        "left": number(quality.left, 2),
        "median_ms": number(quality.median_ms, 0),
        "fast": number(quality.fast, 2),
        "implausible": number(quality.implausible, 2),
        "blurred": number(quality.blurred, 2),
        "agreement": number(quality.agreement, 2),
        "flags": list(quality.flags),
        "evidence": [statement(evidence, quality.floor_ms) for evidence in quality.evidence],
        "feedback": one.feedback,
    }


def number(value: float | None, digits: int) -> float | None:
    """Rounded; None where there is none, infinity included."""
    return None if value is None or not isfinite(value) else round(value, digits)
