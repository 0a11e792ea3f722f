"""Figures of a fit, drawn by matplotlib, which is optional (`pip install 'lore-active[plot]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.rank.audit import RankEvidence
from lore_active.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Labels of more items than this would cover each other.
MAX_LABELS = 200


def overview(
    embedding: Floats, labels: Sequence[str] | None, evidence: Sequence[RankEvidence]
) -> Figure:
    """The map beside the held-out log-loss of each rank."""
    try:
        # The object-oriented interface opens no window and leaves pyplot's state alone.
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidParameter(
            "Figures need matplotlib, which is not installed: pip install 'lore-active[plot]'."
        ) from None
    figure = Figure(figsize=(10.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_map(left, embedding, labels)
    draw_evidence(right, evidence, embedding.shape[1])
    return figure


def draw_map(axes: Axes, embedding: Floats, labels: Sequence[str] | None) -> None:
    """Items at their coordinates on the first two dimensions, at the same scale."""
    missing = max(2 - embedding.shape[1], 0)
    x, y = np.pad(embedding, ((0, 0), (0, missing)))[:, :2].T
    axes.scatter(x, y, s=12)
    if len(x) <= MAX_LABELS:
        for item, position in enumerate(zip(x, y, strict=True)):
            name = str(item) if labels is None else labels[item]
            axes.annotate(name, position, xytext=(3, 3), textcoords="offset points", fontsize=7)
    axes.set(xlabel="dimension 1", ylabel="dimension 2", title="Map", aspect="equal")


def draw_evidence(axes: Axes, evidence: Sequence[RankEvidence], rank: int) -> None:
    """Held-out log-loss by rank; bars are standard errors of the difference from the best rank."""
    ranks = [row.rank for row in evidence]
    axes.errorbar(
        ranks, [row.loss for row in evidence], [row.error for row in evidence], marker="o"
    )
    axes.axvline(rank, linestyle=":", color="grey")
    axes.set(
        xticks=ranks,
        xlabel="dimensions (0: guessing)",
        ylabel="held-out log-loss",
        title="Prediction error by number of dimensions",
    )
