"""Candidate questions: margins, their variances, and the expected reduction of variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.embedding import information
from lore_active.questions.pool import Questions
from lore_active.types import Floats


class Gradients:
    """Margins of questions at an embedding, and their gradients by its coordinates."""

    def __init__(self, z: Floats, questions: Questions) -> None:
        shape = (len(questions), 3 * z.shape[1])
        self.margins = np.empty(len(questions))
        self.slopes, self.indices = np.empty(shape), np.empty(shape, np.int64)
        information.gradients(z, questions, self.margins, self.slopes, self.indices)

    def variances(self, covariance: Floats) -> Floats:
        """Variances of the margins, given the covariance of the coordinates."""
        out = np.empty(len(self.margins))
        information.margin_variances(self.slopes, self.indices, covariance, out)
        return out

    def through(self, matrix: Floats) -> Floats:
        """Gradients times a matrix with one row per coordinate; one row per question."""
        out = np.empty((len(self.margins), matrix.shape[1]))
        information.images(self.slopes, self.indices, matrix, out)
        return out


class Candidates:
    """Questions scored by the expected reduction of the variance of target margins.

    The columns of `targets` are the gradients of the target margins, already multiplied by the
    covariance of the coordinates. After `narrow`, the shortlisted questions can be assumed
    answered one by one with `learn`.
    """

    def __init__(
        self,
        z: Floats,
        covariance: Floats,
        targets: Floats,
        rows: Questions,
        temperature: float,
    ) -> None:
        gradients = Gradients(z, rows)
        e = np.exp(-np.abs(gradients.margins) / temperature)
        self.rows = rows
        self._covariance = covariance
        self._weight = e / ((1.0 + e) ** 2 * temperature**2)
        self._slopes, self._indices = gradients.slopes, gradients.indices
        self._seen = gradients.through(targets)
        self._variances = gradients.variances(covariance)
        self._learnt = 0
        self._shrunk, self._factors = np.empty((0, len(covariance))), np.empty(0)

    def scores(self) -> Floats:
        """Expected reduction of the targets' variance by an answer to each question."""
        squares = np.einsum("tq,tq->t", self._seen, self._seen)
        return np.asarray(self._weight * squares / (1.0 + self._weight * self._variances))

    def narrow(self, keep: NDArray[np.int64], learn: int) -> None:
        """Keep a shortlist, of which up to `learn` questions will be assumed answered."""
        self.rows = self.rows[keep]
        self._weight, self._variances = self._weight[keep], self._variances[keep]
        self._slopes, self._indices = self._slopes[keep], self._indices[keep]
        self._seen = self._seen[keep]
        self._shrunk, self._factors = np.empty((learn, len(self._covariance))), np.empty(learn)

    def learn(self, best: int) -> None:
        """Update scores and variances as if this question had been answered."""
        information.learn(
            best,
            self._weight[best],
            self._covariance,
            self._slopes,
            self._indices,
            self._learnt,
            self._shrunk,
            self._factors,
            self._seen,
            self._variances,
        )
        self._learnt += 1
