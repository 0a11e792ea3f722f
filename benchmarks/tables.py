"""Tables, notes and curves that a benchmark prints and keeps under docs/benchmarks."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numba
import numpy as np

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"


class Page:
    """A Markdown page that is printed while it grows and written at the end."""

    def __init__(self, name: str, title: str, command: str) -> None:
        self._file = FOLDER / f"{name}.md"
        self._lines: list[str] = []
        self.text(f"# {title}\n\nWritten by `{command}`. {machine()}")

    def text(self, text: str) -> None:
        self._lines += [text, ""]
        print(text + "\n", flush=True)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
        self.text("\n".join(lines))

    def keep_others(self) -> None:
        """Take over the sections (## …) of the page as it is that were not written again."""
        if not self._file.exists():
            return
        new = set(_sections("\n".join(self._lines)))
        for heading, text in _sections(self._file.read_text(encoding="utf-8")).items():
            if heading not in new:
                self.text(text)

    def write(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._file.write_text("\n".join(self._lines).rstrip() + "\n", encoding="utf-8")
        print(f"written: {self._file.relative_to(FOLDER.parent.parent)}")


def _sections(text: str) -> dict[str, str]:
    """Each section of a page by its heading."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.rstrip() for part in parts}


def machine() -> str:
    """What the figures were measured with."""
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}, "
        f"{platform.machine()}; measured on a shared machine, so compare ratios rather than "
        "absolute times."
    )


# --- curves --------------------------------------------------------------------------------------

Point = tuple[float, float]
WIDTH, HEIGHT = 320, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 30, 44
COLUMNS = 2
LEGEND = 34
# Two hues that people with any colour vision tell apart, and the dashes help where there is none.
STYLES = (
    'stroke="#0b5394" stroke-width="2.2"',
    'stroke="#c2571a" stroke-width="2.2" stroke-dasharray="7 4"',
)


@dataclass(frozen=True)
class Panel:
    """One small chart: curves in the legend's order, and a level to reach."""

    title: str
    curves: Sequence[Sequence[Point]]
    level: float


@dataclass(frozen=True)
class Axis:
    """From where to where, the ticks with their texts, and what is measured."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    name: str


def draw(
    file: Path, panels: Sequence[Panel], legend: Sequence[str], level: str, x: Axis, y: Axis
) -> None:
    """Write the panels in rows of two, the legend above."""
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH, LEGEND + rows * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_legend(legend, level),
    ]
    for number, panel in enumerate(panels):
        across, down = (number % COLUMNS) * WIDTH, LEGEND + (number // COLUMNS) * HEIGHT
        parts += [f'<g transform="translate({across} {down})">', *_panel(panel, x, y), "</g>"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _legend(names: Sequence[str], level: str) -> list[str]:
    parts, across = [], LEFT
    dotted = 'stroke="#777" stroke-width="1.2" stroke-dasharray="2 3"'
    for name, style in zip((*names, level), (*STYLES[: len(names)], dotted), strict=True):
        parts.append(f'<path d="M{across} 18h28" fill="none" {style}/>')
        parts.append(f'<text x="{across + 34}" y="22">{escape(name)}</text>')
        across += 56 + round(6.3 * len(name))
    return parts


def _panel(panel: Panel, x: Axis, y: Axis) -> list[str]:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(point: Point) -> tuple[float, float]:
        return (
            LEFT + wide * (point[0] - x.low) / (x.high - x.low),
            TOP + high * (y.high - min(max(point[1], y.low), y.high)) / (y.high - y.low),
        )

    parts = [
        f'<text x="{LEFT + wide / 2:.1f}" y="18" text-anchor="middle" font-weight="bold">'
        f"{escape(panel.title)}</text>"
    ]
    for value, text in y.ticks:
        _, row = at((x.low, value))
        parts.append(f'<path d="M{LEFT} {row:.1f}h{wide}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{row + 4:.1f}" text-anchor="end">{text}</text>')
    for value, text in x.ticks:
        column, row = at((value, y.low))
        parts.append(f'<path d="M{column:.1f} {row:.1f}v4" stroke="#777"/>')
        parts.append(
            f'<text x="{column:.1f}" y="{row + 17:.1f}" text-anchor="middle">{text}</text>'
        )
    _, level = at((x.low, panel.level))
    parts.append(
        f'<path d="M{LEFT} {level:.1f}h{wide}" stroke="#777" stroke-width="1.2" '
        'stroke-dasharray="2 3"/>'
    )
    parts.append(f'<path d="M{LEFT} {TOP}v{high}h{wide}" fill="none" stroke="#777"/>')
    for curve, style in zip(panel.curves, STYLES, strict=True):
        line = " ".join(f"{column:.1f},{row:.1f}" for column, row in map(at, curve))
        parts.append(f'<polyline points="{line}" fill="none" {style}/>')
    middle = TOP + high / 2
    parts.append(
        f'<text x="{LEFT + wide / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x.name)}</text>"
    )
    parts.append(
        f'<text x="13" y="{middle:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 13 {middle:.1f})">{escape(y.name)}</text>'
    )
    return parts
