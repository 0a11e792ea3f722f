"""Candidate questions of a large set of items: as `Candidates`, with one covariance per item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.candidates import Gradients
from lore_active.embedding import covariance
from lore_active.questions.pool import Questions
from lore_active.types import Floats


class BlockCandidates:
    """Questions scored by the expected reduction of the variance of target margins.

    The covariance of the coordinates consists of one block for each item. A question then reduces
    the variance of a target through the items that they share, and two random questions rarely
    share more than one. So the targets enter through one matrix for each item, the mean of
    weight · slope slopeᵀ over the targets that contain it, and there can be many of them.

    `item_blocks` has the shape (items, axes, axes); `targets` and `weights` are the target
    questions and their weights.
    """

    def __init__(
        self,
        z: Floats,
        item_blocks: Floats,
        targets: Questions,
        weights: Floats,
        rows: Questions,
        temperature: float,
    ) -> None:
        gradients = Gradients(z, rows)
        e = np.exp(-np.abs(gradients.margins) / temperature)
        self.rows = rows
        self._blocks = item_blocks.copy()
        self._weight = e / ((1.0 + e) ** 2 * temperature**2)
        self._slopes = gradients.slopes
        self._sensitivity = np.zeros_like(self._blocks)
        covariance.add_sensitivity(
            Gradients(z, targets).slopes, targets, weights / len(targets), self._sensitivity
        )

    def scores(self) -> Floats:
        """Expected reduction of the targets' variance by an answer to each question."""
        variances, reductions = np.empty(len(self.rows)), np.empty(len(self.rows))
        covariance.block_variances(self._slopes, self.rows, self._blocks, variances)
        covariance.block_reductions(
            self._slopes, self.rows, self._blocks, self._sensitivity, reductions
        )
        return np.asarray(self._weight * reductions / (1.0 + self._weight * variances))

    def narrow(self, keep: NDArray[np.int64], learn: int) -> None:
        """Keep a shortlist."""
        self.rows, self._weight = self.rows[keep], self._weight[keep]
        self._slopes = np.ascontiguousarray(self._slopes[keep])

    def learn(self, best: int) -> None:
        """Update the blocks of a question's items as if it had been answered."""
        axes = self._blocks.shape[1]
        slopes = [self._slopes[best, x * axes : (x + 1) * axes] for x in range(3)]
        own = [self._blocks[item] for item in self.rows[best]]
        variances = [
            covariance.quadratic(slope, block) for slope, block in zip(slopes, own, strict=True)
        ]
        for slope, block, variance in zip(slopes, own, variances, strict=True):
            noise = 1.0 + self._weight[best] * (sum(variances) - variance)
            covariance.learn_block(block, slope, self._weight[best] / noise)
