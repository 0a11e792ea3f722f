"""Quality of an embedding: accuracy on answers, and error relative to a known space."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active.data.comparisons import as_triplets
from lore_active.embedding.kernels import SMOOTHING
from lore_active.embedding.solver import SolverSettings
from lore_active.types import Floats

# Tikhonov term of the alignment: keeps it defined when a dimension is empty.
ALIGNMENT_RIDGE = 1e-3


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


def aligned(embedding: Floats, space: Floats) -> Floats:
    """Linear least-squares map of the embedding onto the known space."""
    centred = embedding - embedding.mean(axis=0)
    centre = space.mean(axis=0)
    square = centred.T @ centred + ALIGNMENT_RIDGE * np.eye(centred.shape[1])
    return np.asarray(centred @ np.linalg.solve(square, centred.T @ (space - centre)) + centre)


def procrustes_distance(embedding: Floats, space: Floats) -> float:
    """Normalised Procrustes distance: residual of the alignment over the embedding's norm."""
    size = np.linalg.norm(embedding - embedding.mean(axis=0))
    residual = np.linalg.norm(space - aligned(embedding, space))
    return float(residual / size) if size > 0 else float("inf")


def psnr(embedding: Floats, space: Floats) -> float:
    """Peak signal-to-noise ratio of the aligned embedding, in decibels."""
    fitted = aligned(embedding, space)
    error = np.linalg.norm(fitted - space)
    peak = float(fitted.max())
    if error == 0.0:
        return float("inf")
    return float(20.0 * np.log10(peak / error)) if peak > 0 else float("-inf")
