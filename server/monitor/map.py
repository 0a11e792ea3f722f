"""The map's coordinates and ellipses, in the frame that stays put between updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active.types import Floats
from server.store.models import ModelRow

DIGITS = 4


def damage(model: ModelRow | None, items: int) -> str:
    """What is wrong with a stored model, in a sentence; empty where nothing is."""
    if model is None:
        return ""
    for name, shape in (
        ("embedding", (items, model.rank)),
        ("picture", (items, model.rank)),
        ("spread", (items, model.rank, model.rank)),
    ):
        held: bytes = getattr(model, name)
        if len(held) != 8 * int(np.prod(shape)):
            what = f"the {name} has {len(held)} bytes, which are not {shape} numbers"
        elif not np.isfinite(np.frombuffer(held)).all():
            what = f"the {name} has values that are no numbers"
        else:
            continue
        return (
            f"Model {model.version} in the database is damaged: {what}. The next one replaces it."
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
        return {"version": 0, "rank": 0, "positions": [], "spread": None, "turn": []}
    picture = np.frombuffer(model.picture).reshape(items, rank)
    spread = np.frombuffer(model.spread).reshape(items, rank, rank)
    turn = rotation(picture, z)
    turned = np.einsum("ka,iab,lb->ikl", turn, spread, turn)
    triangle = turned[:, *np.triu_indices(rank)]
    return {
        "version": model.version,
        "rank": rank,
        "positions": _rounded(picture),
        "spread": _rounded(triangle) if spread.any() else None,
        "turn": np.round(turn, 6).tolist(),
    }


def rotation(one: Floats, other: Floats) -> Floats:
    """The rotation (or reflection) that brings `one` closest to `other`: one · turn ≈ other."""
    left, _, right = np.linalg.svd(one.T @ other)
    return np.asarray(left @ right)


def _rounded(values: Floats) -> list[list[float]]:
    """To four digits of the largest: no eye sees more, and the message stays small."""
    largest = float(np.abs(values).max()) or 1.0
    decimals = DIGITS - 1 - int(np.floor(np.log10(largest)))
    rounded: list[list[float]] = np.round(values, max(0, decimals)).tolist()
    return rounded
