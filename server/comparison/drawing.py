"""A comparison as a picture (SVG) or as a page of its own (HTML): no script, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from server.comparison.run import Result

WIDTH, ROW, TOP, LEFT, RIGHT = 720, 30, 46, 190, 190
INK, FAINT, OURS = "#1b2733", "#c9d1d9", "#0b6e8f"
FONT = "font-family='system-ui, sans-serif' font-size='13'"


def ordered(results: Sequence[Result]) -> list[Result]:
    """Best first; those without figures last."""
    return sorted(results, key=lambda one: -(one.accuracy if one.accuracy is not None else -1.0))


def state(one: Result, folds: int) -> str:
    """What has to be said of a method that did not go through; empty if it did."""
    if one.status == "done":
        return ""
    if one.status == "missing":
        return f"not run: {one.words}"
    done = f" with {len(one.folds)} of {folds} folds done"
    return (f"failed: {one.words}" if one.status == "failed" else one.words) + done


def svg(results: Sequence[Result], folds: int, title: str) -> str:
    """Held-out accuracy with its standard error, a row a method; rank and seconds beside it."""
    rows = ordered(results)
    shares = [one.accuracy for one in rows if one.accuracy is not None]
    errors = [one.error or 0.0 for one in rows if one.accuracy is not None]
    low = min([*(a - e for a, e in zip(shares, errors, strict=True)), 0.99]) if shares else 0.5
    high = max([*(a + e for a, e in zip(shares, errors, strict=True)), 0.0]) if shares else 1.0
    pad = max(0.005, 0.08 * (high - low))
    low, high = max(0.0, low - pad), min(1.0, high + pad)

    def x(share: float) -> float:
        return LEFT + (share - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    height = TOP + ROW * len(rows) + 34
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' "
        f"width='{WIDTH}' height='{height}' role='img' {FONT} fill='{INK}'>",
        f"<title>{escape(title)}</title><rect width='100%' height='100%' fill='white'/>",
        f"<text x='{LEFT}' y='22' font-weight='600'>answers predicted right, in %</text>",
        f"<text x='{WIDTH - 130}' y='22' text-anchor='end' font-weight='600'>rank</text>",
        f"<text x='{WIDTH - 16}' y='22' text-anchor='end' font-weight='600'>seconds</text>",
    ]
    for tick in _ticks(low, high):
        at, end = x(tick), TOP + ROW * len(rows)
        out.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='36' y2='{end}' stroke='{FAINT}'/>")
        label = f"{100 * tick:.1f}".removesuffix(".0")
        out.append(f"<text x='{at:.1f}' y='{end + 20}' text-anchor='middle'>{label}</text>")
    for number, one in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        colour = OURS if one.method.startswith("lore") else INK
        out.append(f"<text x='16' y='{y + 4:.1f}' fill='{colour}'>{escape(one.name)}</text>")
        if one.accuracy is None:
            words = escape(state(one, folds))[:80]
            out.append(f"<text x='{LEFT}' y='{y + 4:.1f}' fill='#5b6875'>{words}</text>")
            continue
        if one.error:
            ends = (x(one.accuracy - one.error), x(one.accuracy + one.error))
            out.append(
                f"<line x1='{ends[0]:.1f}' x2='{ends[1]:.1f}' y1='{y}' y2='{y}' "
                f"stroke='{colour}' stroke-width='2'/>"
            )
        fill = colour if one.status == "done" else "white"
        out.append(
            f"<circle cx='{x(one.accuracy):.1f}' cy='{y}' r='5' fill='{fill}' stroke='{colour}' "
            f"stroke-width='2'><title>{escape(one.name)}: {percent(one)}</title></circle>"
        )
        for at, text in ((WIDTH - 130, rank(one)), (WIDTH - 16, seconds(one))):
            out.append(f"<text x='{at}' y='{y + 4:.1f}' text-anchor='end'>{text}</text>")
    return "\n".join([*out, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Round shares inside the range, about five of them."""
    for step in (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        first, last = int(-(-low // step)), int(high // step)
        if last - first < 6:
            return [step * number for number in range(first, last + 1)]
    return [low, high]


def percent(one: Result) -> str:
    """Accuracy with its standard error, in per cent."""
    if one.accuracy is None:
        return "–"
    error = "" if one.error is None else f" ± {100 * one.error:.2f}"
    return f"{100 * one.accuracy:.2f}{error}"


def rank(one: Result) -> str:
    """Mean rank, without decimals where all folds agree."""
    return "–" if one.rank is None else f"{one.rank:.1f}".removesuffix(".0")


def seconds(one: Result) -> str:
    """Mean seconds of a fit."""
    if not one.folds:
        return "–"
    mean = sum(fold.seconds for fold in one.folds) / len(one.folds)
    return f"{mean:.2f}" if mean < 10 else f"{mean:.0f}"


def html(results: Sequence[Result], folds: int, title: str, notes: Sequence[str]) -> str:
    """A page with the picture, the table and what has to be said."""
    cells = "\n".join(
        "<tr>"
        + "".join(
            f"<td>{escape(cell)}</td>"
            for cell in (one.name, percent(one), rank(one), seconds(one), note(one, folds))
        )
        + "</tr>"
        for one in ordered(results)
    )
    said = "\n".join(f"<p>{escape(one)}</p>" for one in notes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: {INK}; max-width: 760px; margin: 2em auto;
  padding: 0 1em; }}
svg {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .3em .6em; border-bottom: 1px solid {FAINT}; }}
td:nth-child(-n+4) {{ white-space: nowrap; }}
</style></head><body>
<h1>{escape(title)}</h1>
{svg(results, folds, title)}
<table><thead><tr><th>method</th><th>accuracy, %</th><th>rank</th><th>seconds</th><th>note</th></tr>
</thead><tbody>
{cells}
</tbody></table>
{said}
</body></html>
"""


def note(one: Result, folds: int) -> str:
    """What is said beside a method: what it chose, or why it has no or fewer figures."""
    return state(one, folds) or one.words
