"""Which kind of question needs the least time of participants, by simulated studies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lore_active.simulation.planning import COMPARED, PlanRow

# A kind is recommended only if it settles at the right rank at least nearly as often as the best.
MAX_LESS_RIGHT = 0.1


@dataclass(frozen=True)
class Recommendation:
    """The kind of question that needs the least time of participants, and the hours of all kinds.

    `hours` are medians, averaged over the ranks and sizes of dimensions that were simulated.
    """

    kind: str
    hours: dict[str, float]


def recommended(rows: Iterable[PlanRow]) -> Recommendation | None:
    """Compare the kinds by their adaptive studies; None if there are none.

    Examples
    --------
    >>> from lore_active.simulation.planning import PlanRow
    >>> from lore_active.simulation.recommendation import recommended
    >>> row = (2, "fisher", 5, 5, 5, (200.0,) * 3, (3,) * 3)
    >>> grids = PlanRow(*row, (0.5,) * 3, None, 0.1, "rank-2-of-8")
    >>> triplets = PlanRow(*row, (0.9,) * 3, None, 0.1)
    >>> recommended([triplets, grids]).kind
    'rank-2-of-8'
    """
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row.selector == COMPARED[0]:
            by_kind.setdefault(row.kind, []).append((row.hours[1], row.right / row.runs))
    if not by_kind:
        return None
    means = {kind: np.mean(values, axis=0) for kind, values in by_kind.items()}
    hours = {kind: float(mean[0]) for kind, mean in means.items()}
    shares = {kind: float(mean[1]) for kind, mean in means.items()}
    enough = max(shares.values()) - MAX_LESS_RIGHT
    best = min((kind for kind in hours if shares[kind] >= enough), key=lambda kind: hours[kind])
    return Recommendation(best, hours)
