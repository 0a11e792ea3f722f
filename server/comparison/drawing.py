"""A comparison as a figure (SVG) or a self-contained page (HTML), without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from server.comparison.run import Result

WIDTH, ROW, TOP, LEFT, RIGHT = 720, 30, 46, 190, 190
INK, FAINT, OURS = "#1b2733", "#c9d1d9", "#0b6e8f"
FONT = "font-family='system-ui, sans-serif' font-size='13'"


def ordered(results: Sequence[Result]) -> list[Result]:
    """Sort by accuracy, best first; methods without results last."""
    return sorted(
        results, key=lambda result: -(result.accuracy if result.accuracy is not None else -1.0)
    )


def state(result: Result, folds: int) -> str:
    """Say why a method was not completed; empty if it was."""
    if result.status == "done":
        return ""
    if result.status == "missing":
        return f"not run: {result.message}"
    done = f" after {len(result.folds)} of {folds} folds"
    return (f"failed: {result.message}" if result.status == "failed" else result.message) + done


def svg(results: Sequence[Result], folds: int, title: str) -> str:
    """Draw held-out accuracy ± standard error, one row per method, with rank and seconds."""
    rows = ordered(results)
    shares = [result.accuracy for result in rows if result.accuracy is not None]
    errors = [result.error or 0.0 for result in rows if result.accuracy is not None]
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
        f"<text x='{LEFT}' y='22' font-weight='600'>held-out accuracy, %</text>",
        f"<text x='{WIDTH - 130}' y='22' text-anchor='end' font-weight='600'>rank</text>",
        f"<text x='{WIDTH - 16}' y='22' text-anchor='end' font-weight='600'>seconds</text>",
    ]
    for tick in _ticks(low, high):
        at, end = x(tick), TOP + ROW * len(rows)
        out.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='36' y2='{end}' stroke='{FAINT}'/>")
        label = f"{100 * tick:.1f}".removesuffix(".0")
        out.append(f"<text x='{at:.1f}' y='{end + 20}' text-anchor='middle'>{label}</text>")
    for number, result in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        colour = OURS if result.method.startswith("lore") else INK
        out.append(f"<text x='16' y='{y + 4:.1f}' fill='{colour}'>{escape(result.name)}</text>")
        if result.accuracy is None:
            text = escape(state(result, folds))[:80]
            out.append(f"<text x='{LEFT}' y='{y + 4:.1f}' fill='#5b6875'>{text}</text>")
            continue
        if result.error:
            ends = (x(result.accuracy - result.error), x(result.accuracy + result.error))
            out.append(
                f"<line x1='{ends[0]:.1f}' x2='{ends[1]:.1f}' y1='{y}' y2='{y}' "
                f"stroke='{colour}' stroke-width='2'/>"
            )
        fill = colour if result.status == "done" else "white"
        out.append(
            f"<circle cx='{x(result.accuracy):.1f}' cy='{y}' r='5' fill='{fill}' stroke='{colour}' "
            f"stroke-width='2'><title>{escape(result.name)}: {percent(result)}</title></circle>"
        )
        for at, text in ((WIDTH - 130, rank(result)), (WIDTH - 16, seconds(result))):
            out.append(f"<text x='{at}' y='{y + 4:.1f}' text-anchor='end'>{text}</text>")
    return "\n".join([*out, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Choose about five round values within the range."""
    for step in (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        first, last = int(-(-low // step)), int(high // step)
        if last - first < 6:
            return [step * number for number in range(first, last + 1)]
    return [low, high]


def percent(result: Result) -> str:
    """Format accuracy ± standard error in percent."""
    if result.accuracy is None:
        return "–"
    error = "" if result.error is None else f" ± {100 * result.error:.2f}"
    return f"{100 * result.accuracy:.2f}{error}"


def rank(result: Result) -> str:
    """Format the mean rank, without decimals if it is an integer."""
    return "–" if result.rank is None else f"{result.rank:.1f}".removesuffix(".0")


def seconds(result: Result) -> str:
    """Format the mean seconds of a fit."""
    if not result.folds:
        return "–"
    mean = sum(fold.seconds for fold in result.folds) / len(result.folds)
    return f"{mean:.2f}" if mean < 10 else f"{mean:.0f}"


def html(results: Sequence[Result], folds: int, title: str, notes: Sequence[str]) -> str:
    """Write a page with the figure, the table and the notes."""
    cells = "\n".join(
        "<tr>"
        + "".join(
            f"<td>{escape(cell)}</td>"
            for cell in (row.name, percent(row), rank(row), seconds(row), note(row, folds))
        )
        + "</tr>"
        for row in ordered(results)
    )
    paragraphs = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in notes)
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
{paragraphs}
</body></html>
"""


def note(result: Result, folds: int) -> str:
    """Describe a method's choices, or why results are missing."""
    return state(result, folds) or result.message
