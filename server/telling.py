"""A what-if in words for the terminal: the original and the supposed study side by side."""

from __future__ import annotations

from collections.abc import Iterator

from lore_active.study import LoadedStudy
from server.supposing import Change
from server.trajectories import Point, Trajectory, WhatIf

MOST_ROWS = 16
_CELL = 37


def table(found: WhatIf, change: Change, study: LoadedStudy) -> Iterator[str]:
    """Line by line."""
    columns = {"original": found.original}
    if found.same_pool is not None:
        columns[f"same pool, {study.settings.learning.selector}"] = found.same_pool
    columns["what if"] = found.what_if
    yield "         " + "".join(f"  {name:<{_CELL}}" for name in columns).rstrip()
    heads = f"  {'rank':>4} {'held out':>9} {'random questions':>16}"
    yield " answers " + "".join(f"{heads:<{_CELL + 2}}" for _ in columns).rstrip()
    for answers in _rows(list(columns.values())):
        cells = "".join(f"  {_cell(one, answers):<{_CELL}}" for one in columns.values())
        yield f"{answers:8d} {cells}".rstrip()
    yield ""
    for name, one in columns.items():
        yield f"{name}: {_stop(one)}"
    yield _difference(found)
    if change.selector is not None:
        yield (
            "Another selector can choose only among the questions that were answered, each once; "
            "most of them were chosen by the study's own selector."
        )


def _rows(ways: list[Trajectory]) -> list[int]:
    """Where to look: at audits, evenly, at every stop, and at the end."""
    audits = sorted({point.answers for one in ways for point in one.points})
    every = -(-len(audits) // MOST_ROWS)
    stops = {one.stopped_at for one in ways if one.stopped_at is not None}
    return sorted({*audits[::-every], *stops})


def _cell(one: Trajectory, answers: int) -> str:
    point = one.at(answers)
    if point is None or answers > one.answers:
        return f"{'–':>4}"
    mark = "  stop" if answers == one.stopped_at else ""
    return f"{point.rank:4d} {_percent(point.held_out):>9} {_random(point):>16}{mark}"


def _random(point: Point) -> str:
    if point.progressive is None or point.low is None or point.high is None:
        return "–"
    return f"{_percent(point.progressive)} ({100 * point.low:.0f}–{100 * point.high:.0f})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _stop(one: Trajectory) -> str:
    if one.stopped_at is None:
        return f"not settled by {one.answers} answers. {one.headline}"
    rank = f"{one.stopped_rank} dimension{'s' * (one.stopped_rank != 1)}"
    return f"settled at {rank} after {one.stopped_at} of {one.answers} answers."


def _difference(found: WhatIf) -> str:
    if found.answers_saved is not None:
        return f"Answers saved: {found.answers_saved}."
    if found.answers_missing is not None:
        return f"Answers missing at the original's stop: {found.answers_missing}."
    return "Answers missing: unknown; all that were collected would not have been enough."
