"""Draw the picture of the method page: dimensions of interest, and what a study rules out.

Run with `make pictures`. All data come from one simulated study.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lore_active.learner.learner import Learner
from lore_active.simulation.observers import ObserverNoise, crowd
from lore_active.simulation.run import SimulatedParticipants, simulate
from lore_active.simulation.worlds import shares, strengths
from lore_active.stopping.smallest_dimension import SmallestDimension

FILE = Path(__file__).with_suffix(".svg")
ITEMS, PARTICIPANTS, MAX_ANSWERS, SEED = 30, 20, 4000, 4
STRENGTHS = np.array([1.0, 0.8, 0.6, 0.2])
SMALLEST = 0.10
WIDTH, HEIGHT = 800, 330
TOP, BOTTOM = 58, 268
BARS = (64, 280)
CURVES = (372, 736)
COLOURS = ("#0b5394", "#c2571a", "#2d7d46", "#6a6a6a")
HIGHEST = 0.8


def main() -> None:
    """Simulate the study and write the picture."""
    space = strengths(ITEMS, STRENGTHS, np.random.default_rng(SEED))
    learner = Learner(ITEMS, SEED, stopping=SmallestDimension(smallest_dimension=SMALLEST))
    participants = SimulatedParticipants(crowd(space, PARTICIPANTS, ObserverNoise(0.1), SEED))
    course = []
    for record in simulate(learner, participants, MAX_ANSWERS, None, lambda: 0.0):
        if not record.get("summary"):
            squares = learner.estimate.spectrum**2
            course.append((record["answers"], squares / squares.sum(), record["ruled_out_share"]))
    stopped = learner.decision.rank if learner.decision.settled else None
    FILE.write_text(_picture(shares(space), course, stopped), encoding="utf-8")
    print(f"Wrote {FILE.name}: {stopped} dimensions after {course[-1][0]} answers.")


Course = Sequence[tuple[int, np.ndarray, float | None]]


def _y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share / HIGHEST


def _picture(true: np.ndarray, course: Course, stopped: int | None) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>',
        *_bars(true),
        *_curves(course, stopped),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _frame(title: str, left: float, right: float, below: str) -> list[str]:
    parts = [
        _text(left - 34, 26, title, 'font-weight="bold" font-size="14"'),
        _text((left + right) / 2, HEIGHT - 16, below, 'text-anchor="middle"'),
    ]
    for tick in np.arange(0.0, HIGHEST + 0.01, 0.2):
        parts.append(f'<path d="M{left} {_y(tick):.1f}H{right}" stroke="#e4e4e4"/>')
        parts.append(_text(left - 6, _y(tick) + 4, f"{100 * tick:.0f} %", 'text-anchor="end"'))
    return parts


def _smallest(left: float, right: float, label: str) -> list[str]:
    row = _y(SMALLEST)
    parts = [
        f'<path d="M{left} {row:.1f}H{right}" stroke="#b00020" stroke-width="1.6" '
        'stroke-dasharray="5 4"/>'
    ]
    if label:
        parts.append(_text(right, row - 6, label, 'text-anchor="end" fill="#b00020"'))
    return parts


def _bars(true: np.ndarray) -> list[str]:
    left, right = BARS
    step = (right - left) / len(true)
    parts = _frame("What participants perceive", left, right, "dimensions, strongest first")
    for number, share in enumerate(true):
        middle = left + (number + 0.5) * step
        colour = COLOURS[number] if share >= SMALLEST else "#b8b8b8"
        parts.append(
            f'<rect x="{middle - 17:.1f}" y="{_y(share):.1f}" width="34" '
            f'height="{BOTTOM - _y(share):.1f}" fill="{colour}"/>'
        )
        label = f"{100 * share:.0f} %"
        above = min(_y(share), _y(SMALLEST) if share < SMALLEST else _y(share)) - 7
        parts.append(_text(middle, above, label, 'text-anchor="middle" font-weight="bold"'))
        parts.append(_text(middle, BOTTOM + 18, str(number + 1), 'text-anchor="middle"'))
    return [*parts, *_smallest(left, right, "")]


def _curves(course: Course, stopped: int | None) -> list[str]:
    left, right = CURVES
    most = course[-1][0]

    def x(answers: float) -> float:
        return left + (right - left) * answers / most

    parts = _frame("What the study has found out", left, right, "answers")
    for answers in range(0, most + 1, 200):
        parts.append(_text(x(answers), BOTTOM + 18, str(answers), 'text-anchor="middle"'))
    known = [(answers, bound) for answers, _, bound in course if bound is not None]
    if known:
        top = " ".join(f"{x(answers):.1f},{_y(bound):.1f}" for answers, bound in known)
        first, last = x(known[0][0]), x(known[-1][0])
        parts.append(
            f'<polygon points="{first:.1f},{_y(0.0):.1f} {top} {last:.1f},{_y(0.0):.1f}" '
            'fill="#d9d9d9"/>'
        )
        parts.append(f'<polyline points="{top}" fill="none" stroke="#555" stroke-width="1.6"/>')
        note = 'text-anchor="middle" fill="#444"'
        parts.append(_text(0.5 * (first + last), _y(0.03), "could still be hidden", note))
    ranks = max(len(strength) for _, strength, _ in course)
    for number in range(ranks):
        points = [
            (x(answers), _y(strength[number]))
            for answers, strength, _ in course
            if number < len(strength) and strength[number] <= HIGHEST
        ]
        line = " ".join(f"{column:.1f},{row:.1f}" for column, row in points)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.4"/>'
        )
        label = f'font-weight="bold" fill="{colour}"'
        parts.append(_text(points[-1][0] + 7, points[-1][1] + 5, str(number + 1), label))
    parts += _smallest(left, right, "")
    parts.append(_text(left + 4, _y(SMALLEST) - 6, "smallest of interest", 'fill="#b00020"'))
    if stopped is not None:
        parts.append(f'<path d="M{right} {TOP - 12}V{BOTTOM}" stroke="#222"/>')
        parts.append(_text(right, TOP - 18, f"stop: {stopped} dimensions", 'text-anchor="end"'))
    return parts


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>'


if __name__ == "__main__":
    main()
