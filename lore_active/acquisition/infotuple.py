"""InfoTuple: trials of maximal mutual information between answer and distances.

Canal, G., Fenu, S., & Rozell, C. (2020). Active ordinal querying for tuplewise similarity learning.
AAAI, 34(4), 3332–3340. As there, the distances of a trial are independent Gaussian variables around
those of the embedding, with the variance of all of its distances, and for each anchor the best of
some random trials is asked. The response model is ours.
"""

from __future__ import annotations

import numpy as np

from lore_active.acquisition.grids import turns
from lore_active.acquisition.selectors import AnchorBalance
from lore_active.acquisition.state import Selection, SelectorState
from lore_active.jit import kernel
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool import Questions
from lore_active.types import Floats

# Random trials for each anchor, and draws of the distances of each.
TRIALS, DRAWS = 40, 100
# Questions of a kind without anchors, and triplets, of which the best are asked.
POOL = 500
# Answers are enumerated up to this many; with more, only the first of the picks is scored.
MAX_ANSWERS = 400


@kernel
def mutual_information(draws: Floats, picked: int, ordered: bool) -> float:
    """Information of an answer about distances, from equally probable draws of them.

    `draws` has the shape (n_draws, n_options): distances in units of the temperature.
    """
    count, size = draws.shape
    answers = 1
    for k in range(picked):
        answers *= size - k
    if answers > MAX_ANSWERS:
        picked = 1
        answers = size
    chosen = np.empty(picked, np.int64)
    mean = np.zeros(1 << size if not ordered else answers)
    given = np.zeros(1 << size if not ordered else answers)
    conditional = 0.0
    for t in range(count):
        given[:] = 0.0
        lowest = draws[t].min()
        for code in range(answers):
            left = code
            used = 0
            probability = 1.0
            for k in range(picked):
                place = left % (size - k)
                left //= size - k
                item = 0
                while True:
                    if not used >> item & 1:
                        if place == 0:
                            break
                        place -= 1
                    item += 1
                total = 0.0
                for m in range(size):
                    if not used >> m & 1:
                        total += np.exp(lowest - draws[t, m])
                probability *= np.exp(lowest - draws[t, item]) / max(total, 1e-300)
                used |= 1 << item
                chosen[k] = item
            given[code if ordered else used] += probability
        for a in range(given.shape[0]):
            if given[a] > 0.0:
                conditional -= given[a] * np.log(given[a]) / count
                mean[a] += given[a] / count
    entropy = 0.0
    for a in range(mean.shape[0]):
        if mean[a] > 0.0:
            entropy -= mean[a] * np.log(mean[a])
    return entropy - conditional


class InfoTupleSelector:
    """Select the trials whose answers carry the most information about their distances.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.acquisition.infotuple import InfoTupleSelector
    >>> from lore_active.acquisition.state import SelectorState
    >>> from lore_active.questions.kinds import kind
    >>> from lore_active.questions.pool_of_kinds import AllGrids
    >>> none, asked = np.empty((0, 3), dtype=np.int64), kind("rank-2-of-4")
    >>> space = np.random.default_rng(1).normal(size=(9, 2))
    >>> pending = np.empty((0, 5), dtype=np.int64)
    >>> state = SelectorState(space, 1.0, none, pending, set(), AllGrids(9, asked), asked)
    >>> best = InfoTupleSelector().pick(state, 2, np.random.default_rng(0))
    >>> best.questions.shape, bool((best.scores > 0).all())
    ((2, 5), True)
    """

    name = "infotuple"

    def pick(self, state: SelectorState, count: int, rng: np.random.Generator) -> Selection:
        """Select new questions; see `Selector.pick`."""
        if not state.kind.has_anchor or state.kind == TRIPLET:
            rows = state.source.new(POOL, state.taken, rng)
            scores = self.scores(state, rows, rng)
            if state.kind == TRIPLET:
                turn = AnchorBalance(state, count)
                best = [turn.best(rows, scores) for _ in range(min(count, len(rows)))]
            else:
                best = np.argsort(-scores, kind="stable")[:count].tolist()
            return Selection(rows[best], scores[best])
        items = np.arange(state.n_objects)

        def composed(anchor: int) -> tuple[Questions, float]:
            others = items[items != anchor]
            bodies = np.array(
                [rng.permutation(others)[: state.kind.options] for _ in range(TRIALS)]
            )
            rows = np.column_stack([np.full(TRIALS, anchor), bodies])
            scores = self.scores(state, rows, rng)
            best = int(np.argmax(scores))
            return rows[best : best + 1], float(scores[best])

        return turns(state, count, rng, composed)

    def scores(self, state: SelectorState, rows: Questions, rng: np.random.Generator) -> Floats:
        """Mutual information of each question's answer and its distances."""
        z, options, kind = state.embedding, rows[:, 1:], state.kind
        other = rows[:, :1] if kind.has_anchor else np.roll(options, -1, axis=1)
        if not kind.has_anchor:
            options = np.roll(options, 1, axis=1)
        distance = np.linalg.norm(z[options] - z[other], axis=2) / state.temperature
        first, second = np.triu_indices(len(z), 1)
        deviation = float(np.linalg.norm(z[first] - z[second], axis=1).std()) / state.temperature
        noise = deviation * rng.normal(size=(DRAWS, distance.shape[1]))
        return np.array(
            [
                mutual_information(np.maximum(row + noise, 0.0), kind.pick, kind.ordered)
                for row in distance
            ]
        )
