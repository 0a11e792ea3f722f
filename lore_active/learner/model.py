"""Published models: a versioned embedding, its alignment and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lore_active.acquisition.model import AcquisitionModel
from lore_active.acquisition.state import SelectorState, coordinate_covariance, covariance_blocks
from lore_active.embedding.covariance import MAX_COORDINATES
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.rank.audit import RankEvidence
from lore_active.rank.significance import Proportion
from lore_active.reproducibility import one_thread
from lore_active.stopping.sensitivity import Sensitivity
from lore_active.types import Floats

# Margin, and the positions of the options predicted to be chosen (none for triplets).
Prediction = tuple[float, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Model:
    """An embedding on principal axes, with the version under which it predicts and selects.

    `aligned` is the same embedding, rotated by Procrustes alignment to the previous version, so
    that a plot of it does not spin. `acquisition` is the model of the same answers that selects
    questions. `up_to` is the number of answers that were fitted.
    """

    version: int
    up_to: int
    rank: int
    lam: float
    temperature: float
    embedding: Floats
    singular_values: Floats
    aligned: Floats
    acquisition: AcquisitionModel
    objective: float

    def margin(self, anchor: int, left: int, right: int) -> float:
        """d(anchor, right) − d(anchor, left): positive where left is predicted to be nearer."""
        if self.rank == 0:
            return 0.0
        z = self.embedding
        near = float(np.linalg.norm(z[anchor] - z[left]))
        return float(np.linalg.norm(z[anchor] - z[right])) - near

    def prediction(self, kind: Kind, anchor: int | None, options: Sequence[int]) -> Prediction:
        """The predicted margin of a question, and the positions of the options to be chosen.

        The margin of a triplet is `margin`. Of other kinds it is the difference between the
        distances of the nearest option that is not picked and the last one that is; of the odd one
        out, between those of the nearest two pairs.
        """
        if kind == TRIPLET:
            assert anchor is not None
            left, right = options
            return self.margin(anchor, left, right), ()
        if self.rank == 0:
            return 0.0, ()
        z = self.embedding
        if anchor is None:
            # The distance opposite each option: that of the pair without it.
            a, b, c = (z[item] for item in options)
            distance = np.linalg.norm([b - c, c - a, a - b], axis=1)
        else:
            distance = np.linalg.norm(z[list(options)] - z[anchor], axis=1)
        nearest = np.argsort(distance, kind="stable")
        margin = float(distance[nearest[kind.pick]] - distance[nearest[kind.pick - 1]])
        return margin, tuple(nearest[: kind.pick].tolist())


def sign_aligned(embedding: Floats, previous: Floats | None) -> Floats:
    """Flip principal axes to match the previous version; else, largest coordinates positive."""
    if embedding.shape[1] == 0:
        return embedding
    largest = np.abs(embedding).argmax(axis=0)
    signs = np.sign(embedding[largest, np.arange(embedding.shape[1])])
    if previous is not None and previous.shape[1] == embedding.shape[1]:
        agreement = np.sign((embedding * previous).sum(axis=0))
        signs = np.where(agreement != 0, agreement, signs)
    return np.asarray(embedding * signs)


def procrustes_aligned(embedding: Floats, previous: Floats | None) -> Floats:
    """Rotate and reflect the embedding to match the previous aligned one (Procrustes)."""
    if previous is None or embedding.shape[1] == 0 or previous.shape[1] == 0:
        return embedding
    columns = max(embedding.shape[1], previous.shape[1])
    padded, target = (np.pad(z, ((0, 0), (0, columns - z.shape[1]))) for z in (embedding, previous))
    left, _, right = np.linalg.svd(padded.T @ target)
    # With the same number of axes this is a rotation; a new axis remains a separate axis.
    return (
        np.asarray((padded @ (left @ right))[:, : embedding.shape[1]])
        if (embedding.shape[1] >= previous.shape[1])
        else np.asarray(embedding)
    )


def item_covariances(state: SelectorState) -> Floats | None:
    """Covariance of each item's coordinates (items × rank × rank); None without dimensions.

    Translations and rotations, which no answer can identify, are projected out: the ellipses show
    the uncertainty of an item relative to the others. For too many coordinates the covariance is
    approximated by one block for each item, which knows of no translations or rotations.
    """
    z = state.embedding
    items, rank = z.shape
    if rank == 0:
        return None
    if z.size > MAX_COORDINATES:
        return covariance_blocks(state)
    covariance = coordinate_covariance(state)
    free = []
    for k in range(rank):
        shift = np.zeros((items, rank))
        shift[:, k] = 1.0
        free.append(shift.ravel())
        for m in range(k):
            turn = np.zeros((items, rank))
            turn[:, k], turn[:, m] = z[:, m], -z[:, k]
            free.append(turn.ravel())
    with one_thread():
        basis = np.linalg.qr(np.array(free).T)[0]
        left = covariance - basis @ (basis.T @ covariance)
        rest = left - (left @ basis) @ basis.T
    blocks = rest.reshape(items, rank, items, rank)
    return np.array([blocks[a, :, a, :] for a in range(items)])


@dataclass(frozen=True, eq=False)
class Estimate:
    """The current results of a learner.

    Attributes
    ----------
    version : int
        Version of the model; 0 before the first audit.
    answers : int
        Number of answers that count.
    rank : int
        Number of dimensions of the published embedding.
    lam, temperature : float
        Weight of the rank penalty, and scale of the margins at which they predict best.
    embedding : array of shape (n_objects, rank)
        Coordinates on the principal axes, strongest first.
    aligned : array of shape (n_objects, rank)
        The same, aligned to the previous version for plotting.
    spectrum : array of shape (rank,)
        Singular values of the embedding.
    evidence : tuple of RankEvidence
        Held-out log-loss of every rank in the last audit.
    prequential : Proportion
        Prequential accuracy: recent random questions, predicted before the answers were used.
    ceiling : float or None
        Noise ceiling; None until enough questions have been repeated.
    sensitivity : Sensitivity or None
        What is known about further dimensions; None unless the stopping rule tests for them.

    Examples
    --------
    >>> from lore_active import Learner
    >>> estimate = Learner(n_objects=4).estimate
    >>> estimate.version, estimate.rank, estimate.embedding.shape
    (0, 0, (4, 0))
    """

    version: int
    answers: int
    rank: int
    lam: float
    temperature: float
    embedding: Floats
    aligned: Floats
    spectrum: Floats
    evidence: tuple[RankEvidence, ...]
    prequential: Proportion
    ceiling: float | None
    sensitivity: Sensitivity | None = None
