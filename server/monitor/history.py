"""The model over time: one point for each version, thinned for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from server.monitor.answers import Numbers
from server.store.sqlite.former_names import model_summary
from server.store.summaries import Milestone

MAX_POINTS = 240
MAX_VALUES = 10


@dataclass(frozen=True)
class HistoryPoint:
    """A version of the model, after a number of answers."""

    version: int
    answers: int
    rank: int
    audit: bool
    value: float | None
    low: float | None
    high: float | None
    ceiling: float | None
    spectrum: tuple[float, ...]
    shares: tuple[float, ...]
    """Share of the variance along each dimension, independent of the scale of the fit."""
    ruled_out: float | None = None
    """Smallest share of a further dimension that was ruled out."""


class History:
    """All versions so far; `latest` is the summary of the last one.

    `audited` is how many answers were in the last model that was cross-validated.
    """

    def __init__(self) -> None:
        self.points: list[HistoryPoint] = []
        self.version = 0
        self.latest: dict[str, Any] = {}
        self.audited = 0

    def append(self, milestones: Sequence[Milestone], seqs: Numbers) -> None:
        """Append new versions; `seqs` are the numbers of the answers in order, without practice."""
        for milestone in milestones:
            summary = model_summary(milestone.summary)
            share = summary["prequential"]
            some = share["count"] > 0
            self.points.append(
                HistoryPoint(
                    version=milestone.version,
                    answers=int(np.searchsorted(seqs, milestone.up_to_seq, side="right")),
                    rank=milestone.rank,
                    audit=bool(milestone.audit),
                    value=round(share["value"], 4) if some else None,
                    low=round(share["low"], 4) if some else None,
                    high=round(share["high"], 4) if some else None,
                    ceiling=summary["ceiling"],
                    spectrum=tuple(round(value, 3) for value in summary["spectrum"][:MAX_VALUES]),
                    shares=_shares(summary["spectrum"])[:MAX_VALUES],
                    # Models of earlier versions and of other rules have none.
                    ruled_out=(summary.get("sensitivity") or {}).get("ruled_out"),
                )
            )
            self.version, self.latest = milestone.version, summary
            if milestone.audit:
                self.audited = milestone.answers

    def drawn(self) -> list[HistoryPoint]:
        """At most MAX_POINTS points: audits first, the others evenly, the last one always."""
        points = self.points
        if len(points) <= MAX_POINTS:
            return points
        kept = {at for at, point in enumerate(points) if point.audit}
        if len(kept) > MAX_POINTS // 2:
            kept = set(sorted(kept)[:: 2 * len(kept) // MAX_POINTS + 1])
        even = np.linspace(0, len(points) - 1, MAX_POINTS - len(kept)).astype(int)
        return [points[at] for at in sorted(kept | set(even.tolist()))]


def _shares(singular_values: Sequence[float]) -> tuple[float, ...]:
    squares = np.square(singular_values)
    return tuple(np.round(squares / (squares.sum() or 1.0), 4).tolist())
