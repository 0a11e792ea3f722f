"""A model as it is published: an embedding with its version, and what can be read off it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lore_active.acquisition.model import AcquisitionModel
from lore_active.acquisition.selectors import SelectorState, coordinate_covariance
from lore_active.embedding.covariance import MAX_COORDINATES
from lore_active.rank.cross_validation import RankEvidence
from lore_active.rank.significance import Proportion
from lore_active.reproducibility import one_thread
from lore_active.types import Floats


@dataclass(frozen=True, eq=False)
class Model:
    """An embedding on principal axes, and the version of it that predicted and selected.

    `picture` is the same embedding turned to lie on the previous version, so that a drawing of it
    does not spin. `asker` is the model of the same answers that selects questions. `up_to` is the
    number of answers fitted.
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


def sign_aligned(embedding: Floats, previous: Floats | None) -> Floats:
    """Principal axes in the order and with the signs that fit the previous version best."""
    if embedding.shape[1] == 0:
        return embedding
    largest = np.abs(embedding).argmax(axis=0)
    signs = np.sign(embedding[largest, np.arange(embedding.shape[1])])
    if previous is not None and previous.shape[1] == embedding.shape[1]:
        agreement = np.sign((embedding * previous).sum(axis=0))
        signs = np.where(agreement != 0, agreement, signs)
    return np.asarray(embedding * signs)


def procrustes_aligned(embedding: Floats, previous: Floats | None) -> Floats:
    """The embedding turned and mirrored to lie on the previous picture as closely as it can."""
    if previous is None or embedding.shape[1] == 0 or previous.shape[1] == 0:
        return embedding
    columns = max(embedding.shape[1], previous.shape[1])
    one, other = (np.pad(z, ((0, 0), (0, columns - z.shape[1]))) for z in (embedding, previous))
    left, _, right = np.linalg.svd(one.T @ other)
    # With as many axes as before this is a rotation; a new axis stays an axis of its own.
    return (
        np.asarray((one @ (left @ right))[:, : embedding.shape[1]])
        if (embedding.shape[1] >= previous.shape[1])
        else np.asarray(embedding)
    )


def item_covariances(known: SelectorState) -> Floats | None:
    """Each item's covariance among the axes (items × rank × rank), or None when too many items.

    What no answer can tell, the space's position and turn, is projected out: the ellipses show
    where an item may lie relative to the others.
    """
    z = known.embedding
    items, rank = z.shape
    if rank == 0 or z.size > MAX_COORDINATES:
        return None
    covariance = coordinate_covariance(known)
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
    """All that is known now; `ceiling` is how often a perfect model could be right."""

    version: int
    answers: int
    rank: int
    lam: float
    temperature: float
    embedding: Floats
    aligned: Floats
    spectrum: Floats
    evidence: tuple[RankEvidence, ...]
    progressive: Proportion
    ceiling: float | None
