"""Composition of a batch: coverage design before the first model, then random and active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lore_active.acquisition.model import AcquisitionModel
from lore_active.acquisition.state import Selector, SelectorState
from lore_active.questions.kinds import TRIPLET
from lore_active.questions.pool import Questions, keys
from lore_active.questions.pool_of_kinds import grid_keys
from lore_active.questions.question import Purpose

# Coordinates of the acquisition model are in units of the temperature.
TEMPERATURE = 1.0


@dataclass(frozen=True)
class Local:
    """Share of the active questions that another selector picks, to reveal a further dimension."""

    selector: Selector
    share: float


@dataclass(frozen=True, eq=False)
class Proposal:
    """A selected question, its purpose, and the value of the acquisition function."""

    row: NDArray[np.int64]
    purpose: Purpose
    score: float


def order_drawn(choose: Callable[[], list[Proposal]], rng: np.random.Generator) -> list[Proposal]:
    """Run a selection, and draw the order in which the options of each row are displayed."""
    chosen = choose()
    if chosen and len(chosen[0].row) > 3:
        return [
            replace(
                proposal, row=np.concatenate([proposal.row[:1], rng.permutation(proposal.row[1:])])
            )
            for proposal in chosen
        ]
    flips = rng.random(len(chosen)) < 0.5
    return [
        replace(proposal, row=proposal.row[[0, 2, 1]]) if flip else proposal
        for proposal, flip in zip(chosen, flips, strict=True)
    ]


def coverage_design(
    n: int,
    state: SelectorState,
    as_anchor: NDArray[np.int64],
    as_option: NDArray[np.int64],
    rng: np.random.Generator,
) -> list[Proposal]:
    """Coverage design: questions about the items that were asked about least."""
    anchors, options, taken = as_anchor.copy(), as_option.copy(), set(state.taken)
    chosen = []
    for _ in range(n):
        rows = state.source.coverage(anchors, options, taken, rng)
        if len(rows):
            chosen.append(Proposal(rows[0], "cover", 0.0))
            taken |= _keys(rows, state)
    return chosen


def informative(
    n: int,
    state: SelectorState,
    acquisition: AcquisitionModel,
    selector: Selector,
    random_share: float,
    exploration_share: float,
    rng: np.random.Generator,
    local: Local | None = None,
) -> list[Proposal]:
    """Active questions, mixed with random ones from which accuracy is estimated without bias."""
    is_random = rng.random(n) < random_share
    uniform = state.source.new(int(is_random.sum()), state.taken, rng)
    free = replace(state, taken=state.taken | _keys(uniform, state))
    active = iter(
        _active(
            int(n - is_random.sum()), free, acquisition, selector, exploration_share, rng, local
        )
    )
    randoms: Iterator[Proposal] = (Proposal(row, "random", 0.0) for row in uniform)
    # Either kind may run out before the other.
    mixed = (next(randoms if random else active, None) for random in is_random)
    return [proposal for proposal in mixed if proposal is not None]


def _active(
    count: int,
    state: SelectorState,
    acquisition: AcquisitionModel,
    selector: Selector,
    exploration_share: float,
    rng: np.random.Generator,
    local: Local | None,
) -> list[Proposal]:
    """Active questions, for the exploration share of batches at rank + 1.

    A model whose rank is too low does not value questions about the missing dimension; a wider
    model selects questions that reveal whether it exists.
    """
    if not count:
        return []
    if local is not None and (is_local := rng.random(count) < local.share).any():
        return _with_local(is_local, state, acquisition, selector, exploration_share, rng, local)
    wide = acquisition.wider.shape[1] > 0 and rng.random() < exploration_share
    embedding = acquisition.wider if wide else acquisition.embedding
    picks = selector.pick(replace(state, embedding=embedding, temperature=TEMPERATURE), count, rng)
    return [
        Proposal(row, "active", float(score))
        for row, score in zip(picks.questions, picks.scores, strict=True)
    ]


def _with_local(
    is_local: NDArray[np.bool_],
    state: SelectorState,
    acquisition: AcquisitionModel,
    selector: Selector,
    exploration_share: float,
    rng: np.random.Generator,
    local: Local,
) -> list[Proposal]:
    """Active questions, some of which `local` picks; the others as if those were answered."""
    here = replace(state, embedding=acquisition.embedding, temperature=TEMPERATURE)
    picks = local.selector.pick(here, int(is_local.sum()), rng)
    free = replace(
        state,
        pending=np.vstack([state.pending, picks.questions]),
        taken=state.taken | _keys(picks.questions, state),
    )
    others = iter(
        _active(int((~is_local).sum()), free, acquisition, selector, exploration_share, rng, None)
    )
    near_ties = (
        Proposal(row, "active", float(score))
        for row, score in zip(picks.questions, picks.scores, strict=True)
    )
    mixed = (next(near_ties if is_near_tie else others, None) for is_near_tie in is_local)
    return [proposal for proposal in mixed if proposal is not None]


def _keys(rows: Questions, state: SelectorState) -> set[int]:
    number = keys(rows, state.n_objects) if state.kind == TRIPLET else grid_keys(rows)
    return {int(key) for key in number}
