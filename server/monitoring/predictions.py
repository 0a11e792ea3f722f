"""What the model that was there predicted of each answer, before it was given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from lore_active.types import Floats
from server.store import models
from server.store.database import Connection
from server.store.monitoring import AnswerRow

# Questions wait in the queue, so that the models of neighbouring answers are few, but not one.
MAX_KEPT = 8


class Predictor:
    """Reads each model when the first answer asks for it, and keeps the latest ones."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._models: dict[int, tuple[Floats, float] | None] = {}

    def predicted(self, c: Connection, rows: Sequence[AnswerRow]) -> Floats:
        """Probabilities of the left option; nan where there was no model with a dimension."""
        found = np.full(len(rows), np.nan)
        # By model, so that each is read once.
        order = sorted(range(len(rows)), key=lambda at: rows[at].version)
        for version, places in groupby(order, key=lambda at: rows[at].version):
            model = self._model(c, version)
            if model is None:
                continue
            z, temperature = model
            at = list(places)
            anchor, left, right = (
                z[[getattr(rows[one], name) for one in at]] for name in ("anchor", "left", "right")
            )
            margin = np.linalg.norm(anchor - right, axis=1) - np.linalg.norm(anchor - left, axis=1)
            found[at] = 0.5 + 0.5 * np.tanh(0.5 * margin / temperature)
        return found

    def _model(self, c: Connection, version: int) -> tuple[Floats, float] | None:
        if version not in self._models:
            self._models[version] = self._read(c, version)
            if len(self._models) > MAX_KEPT:
                del self._models[next(iter(self._models))]
        return self._models[version]

    def _read(self, c: Connection, version: int) -> tuple[Floats, float] | None:
        stored = models.coordinates(c, version)
        if stored is None:
            return None
        rank, temperature, held = stored
        # A damaged model predicts nothing; the monitor says elsewhere that it is damaged.
        if not rank or not temperature > 0.0 or len(held) != 8 * self._items * rank:
            return None
        z = np.frombuffer(held).reshape(self._items, rank)
        return (z, temperature) if np.isfinite(z).all() else None
