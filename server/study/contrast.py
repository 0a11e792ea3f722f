"""Colours that are readable on a given background, with contrast ratios by WCAG 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

# Minimum contrast by WCAG AA: of text, and of controls.
TEXT, CONTROL = 4.5, 3.0
# Rounding to 8 bits must not take a colour below the limit.
MARGIN = 1.02
COMFORTABLE = 10.0
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
# From the most pleasant to the most readable.
DARK_INKS, LIGHT_INKS = ("#1c1f23", "#0c0d0f"), ("#eceef0", "#f8f9fa")
DARK_ACCENTS = ("#1d5fa8", "#174c86", "#113a66", "#0b2747", "#051527")
LIGHT_ACCENTS = ("#8fc1f5", "#b3d5f8", "#d3e7fb", "#eaf4fd")

Rgb = tuple[int, int, int]
Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class Palette:
    """The colours of a page, as `#rrggbb`; text and controls meet WCAG AA on all backgrounds.

    `paper` is the background itself; `plate` and `tint` are further backgrounds; `ink` and `soft`
    are for text on all of these; `line` for the borders of controls; `accent` for the main button,
    with text in `accent_ink`.
    """

    scheme: Scheme
    paper: str
    plate: str
    tint: str
    ink: str
    soft: str
    line: str
    accent: str
    accent_ink: str


def palette(background: str) -> Palette:
    """Choose colours for pages with this background (`#rrggbb`)."""
    paper = _rgb(background)
    is_light = contrast(BLACK, paper) >= contrast(WHITE, paper)
    farthest = BLACK if is_light else WHITE
    inks, accents = (DARK_INKS, DARK_ACCENTS) if is_light else (LIGHT_INKS, LIGHT_ACCENTS)
    ink = next(
        (colour for colour in map(_rgb, inks) if contrast(colour, paper) >= COMFORTABLE), farthest
    )
    # Away from the ink, contrast only increases.
    plate = _mixed(paper, WHITE if is_light else BLACK, 0.7 if is_light else 0.25)
    tint = _nearest(paper, ink, lambda colour: contrast(ink, colour) >= TEXT * MARGIN, 0.08)
    soft = _nearest(ink, paper, lambda colour: contrast(colour, tint) >= TEXT * MARGIN, 0.3)
    line = _nearest(ink, paper, lambda colour: contrast(colour, tint) >= CONTROL * MARGIN, 0.6)
    accent = next((colour for colour in map(_rgb, accents) if contrast(colour, tint) >= TEXT), ink)
    accent_ink = max(WHITE, BLACK, key=lambda colour: contrast(colour, accent))
    return Palette(
        "light" if is_light else "dark",
        *map(_hex, (paper, plate, tint, ink, soft, line, accent, accent_ink)),
    )


def contrast(first: Rgb | str, second: Rgb | str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    bright, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: Rgb | str) -> float:
    values = [value / 255 for value in (_rgb(colour) if isinstance(colour, str) else colour)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _nearest(colour: Rgb, other: Rgb, holds: Callable[[Rgb], bool], share: float) -> Rgb:
    """Mix `colour` with at most this share of the other, as much as the condition allows."""
    steps = 20
    mixes = (_mixed(colour, other, share * left / steps) for left in range(steps, 0, -1))
    return next((mix for mix in mixes if holds(mix)), colour)


def _mixed(colour: Rgb, other: Rgb, share: float) -> Rgb:
    red, green, blue = (
        round(mine + share * (theirs - mine)) for mine, theirs in zip(colour, other, strict=True)
    )
    return red, green, blue


def _rgb(colour: str) -> Rgb:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _hex(colour: Rgb) -> str:
    return "#" + "".join(f"{value:02x}" for value in colour)
