"""Quality of an embedding: margins, accuracy and objective on answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.kernels import SMOOTHING
from lore_active.embedding.solver import SolverSettings
from lore_active.types import Floats


def margins(embedding: Floats, triplets: Any) -> Floats:
    """Margin of each answer: d(anchor, farther) − d(anchor, nearer); negative if mispredicted."""
    answers = as_triplets(triplets, n_objects=len(embedding))
    anchor = embedding[answers.anchor]
    near = np.linalg.norm(anchor - embedding[answers.nearer], axis=1)
    far = np.linalg.norm(anchor - embedding[answers.farther], axis=1)
    return np.asarray(far - near)


def objective(embedding: Floats, triplets: Any, settings: SolverSettings) -> float:
    """LORE objective at this embedding: mean logistic loss of the answers plus rank penalty."""
    answers = as_triplets(triplets, n_objects=len(embedding))
    anchor = embedding[answers.anchor]
    near, far = (
        np.sqrt(((anchor - embedding[other]) ** 2).sum(axis=1) + SMOOTHING**2)
        for other in (answers.nearer, answers.farther)
    )
    loss = np.average(np.logaddexp(0.0, settings.margin + near - far), weights=answers.weight)
    singular_values = np.linalg.svd(embedding, compute_uv=False)
    return float(loss + settings.lam * (singular_values**settings.power).sum())


def triplet_accuracy(embedding: Floats, triplets: Any) -> float:
    """Weighted share of answers predicted correctly; a tie counts one half, like a guess."""
    answers = as_triplets(triplets, n_objects=len(embedding))
    margin = margins(embedding, answers)
    return float(np.average(0.5 * (1.0 + np.sign(margin)), weights=answers.weight))
