"""Methods compared, as lines of text."""

from __future__ import annotations

from lore_active.data.triplets import Triplets
from lore_active.wording import many
from server.comparison import drawing
from server.comparison.run import Result


def _count(answers: Triplets) -> str:
    if not answers.compound:
        return many(len(answers), "answer")
    return f"{many(answers.n_trials, 'trial')} ({many(len(answers), 'comparison')})"


def table(results: list[Result], folds: int) -> list[str]:
    """One line per method, best first."""
    lines = [f"{'method':24s} {'accuracy, %':>14s} {'rank':>5s} {'seconds':>8s}"]
    for result in drawing.ordered(results):
        cells = drawing
        lines.append(
            f"{result.name:24s} {cells.percent(result):>14s} {cells.rank(result):>5s} "
            f"{cells.seconds(result):>8s}  {cells.note(result, folds)}".rstrip()
        )
    return lines


def notes(
    answers: Triplets, results: list[Result], summary: dict[str, str | None], folds: int
) -> list[str]:
    """What was compared, and which methods are best."""
    lines = [
        f"{_count(answers)} about {answers.n_objects} items, {folds} folds; answers to the same "
        f"question are always in the same fold. Accuracy: held-out "
        f"{'comparisons' if answers.compound else 'answers'}, ± standard error over folds. "
        "Seconds: one fit on one core."
    ]
    names = {result.method: result for result in results}
    if summary["best"] is not None and summary["simplest"] is not None:
        best, simplest = names[summary["best"]], names[summary["simplest"]]
        lines.append(
            f"Most accurate: {best.name}. Lowest rank within one point of it: {simplest.name} "
            f"({drawing.rank(simplest)})."
        )
    return lines
