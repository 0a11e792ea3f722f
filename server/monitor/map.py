"""Coordinates and covariances of the map, aligned over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active.types import Floats
from server.store.models import ModelRow

DIGITS = 4


def damage(model: ModelRow | None, items: int) -> str:
    """What is wrong with a stored model, as a sentence; empty if it is valid."""
    if model is None:
        return ""
    for name, shape in (
        ("embedding", (items, model.rank)),
        ("aligned", (items, model.rank)),
        ("covariance", (items, model.rank, model.rank)),
    ):
        held: bytes = getattr(model, name)
        if len(held) != 8 * int(np.prod(shape)):
            what = f"the {name} has {len(held)} bytes, which does not match its shape {shape}"
        elif not np.isfinite(np.frombuffer(held)).all():
            what = f"the {name} contains values that are not finite"
        else:
            continue
        return (
            f"Model {model.version} in the database is damaged: {what}. The next model replaces it."
        )
    return ""


def embedding_of(model: ModelRow | None, items: int) -> Floats:
    """Items × rank on principal axes; no columns before there is a model."""
    if model is None:
        return np.zeros((items, 0))
    return np.frombuffer(model.embedding).reshape(items, model.rank)


def placed(model: ModelRow | None, items: int) -> dict[str, Any]:
    """Positions, each item's covariance (upper triangle, row by row), and the principal axes.

    `turn` takes a position to principal axes (strongest first): position · turn.
    """
    z = embedding_of(model, items)
    rank = z.shape[1]
    if model is None or rank == 0:
        return {"version": 0, "rank": 0, "positions": [], "covariance": None, "turn": []}
    aligned = np.frombuffer(model.aligned).reshape(items, rank)
    covariance = np.frombuffer(model.covariance).reshape(items, rank, rank)
    turn = rotation(aligned, z)
    turned = np.einsum("ka,iab,lb->ikl", turn, covariance, turn)
    triangle = turned[:, *np.triu_indices(rank)]
    return {
        "version": model.version,
        "rank": rank,
        "positions": _rounded(aligned),
        "covariance": _rounded(triangle) if covariance.any() else None,
        "turn": np.round(turn, 6).tolist(),
    }


def rotation(first: Floats, other: Floats) -> Floats:
    """The rotation (or reflection) that brings `one` closest to `other`: one · turn ≈ other."""
    left, _, right = np.linalg.svd(first.T @ other)
    return np.asarray(left @ right)


def _rounded(values: Floats) -> list[list[float]]:
    """Rounded to four digits of the largest value, which keeps the message small."""
    largest = float(np.abs(values).max()) or 1.0
    decimals = DIGITS - 1 - int(np.floor(np.log10(largest)))
    rounded: list[list[float]] = np.round(values, max(0, decimals)).tolist()
    return rounded
