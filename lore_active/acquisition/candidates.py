"""Questions that may be asked: what each would teach, and would still once others are answered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lore_active.embedding import information
from lore_active.questions.pool import Questions
from lore_active.types import Floats


class Gradients:
    """Questions' margins in a space, and how they change with its coordinates."""

    def __init__(self, z: Floats, questions: Questions) -> None:
        shape = (len(questions), 3 * z.shape[1])
        self.margins = np.empty(len(questions))
        self.slopes, self.places = np.empty(shape), np.empty(shape, np.int64)
        information.gradients(z, questions, self.margins, self.slopes, self.places)

    def variances(self, covariance: Floats) -> Floats:
        """Of the margins, given the coordinates' covariance."""
        out = np.empty(len(self.margins))
        information.spread(self.slopes, self.places, covariance, out)
        return out

    def through(self, matrix: Floats) -> Floats:
        """A row for each question: its gradient times a matrix with a row for each coordinate."""
        out = np.empty((len(self.margins), matrix.shape[1]))
        information.images(self.slopes, self.places, matrix, out)
        return out


class Candidates:
    """Questions scored by how much their answers would reduce the variance of target margins.

    `targets` holds in its columns what is to be made certain, already seen through the
    coordinates' covariance. The best few that `narrow` leaves can be learnt one after another.
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
        self._slopes, self._places = gradients.slopes, gradients.places
        self._seen = gradients.through(targets)
        self._variances = gradients.variances(covariance)
        self._learnt = 0
        self._shrunk, self._factors = np.empty((0, len(covariance))), np.empty(0)

    def scores(self) -> Floats:
        """By how much an answer to each would reduce the targets' variance now."""
        reach = np.einsum("tq,tq->t", self._seen, self._seen)
        return np.asarray(self._weight * reach / (1.0 + self._weight * self._variances))

    def narrow(self, keep: NDArray[np.int64], learn: int) -> None:
        """Keep only some of them, of which up to `learn` will be learnt."""
        self.rows = self.rows[keep]
        self._weight, self._variances = self._weight[keep], self._variances[keep]
        self._slopes, self._places = self._slopes[keep], self._places[keep]
        self._seen = self._seen[keep]
        self._shrunk, self._factors = np.empty((learn, len(self._covariance))), np.empty(learn)

    def learn(self, best: int) -> None:
        """Reduce what is uncertain as an answer to this one would."""
        information.learn(
            best,
            self._weight[best],
            self._covariance,
            self._slopes,
            self._places,
            self._learnt,
            self._shrunk,
            self._factors,
            self._seen,
            self._variances,
        )
        self._learnt += 1
