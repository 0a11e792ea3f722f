"""Colours of the demo study: two circles of equal lightness in CIELAB, a space of known rank 2."""

from __future__ import annotations

import math
from dataclasses import dataclass

# At this lightness, the circle of hues that fits into sRGB is the widest.
LIGHTNESS = 74.0
# This unit gives the coordinates a standard deviation of 1, so that a noise of 0.1 is moderate.
UNIT = 25.0
WHITE = (0.95047, 1.0, 1.08883)  # D65

# Chroma of each circle and the names of its hues, evenly spaced from 0 degrees (pink) round.
CLEAR = (40.0, (
    "pink", "salmon pink", "coral", "apricot", "sandy orange", "mustard yellow", "olive yellow",
    "yellowish green", "leaf green", "jade green", "turquoise green", "turquoise", "cyan",
    "sky blue", "light blue", "cornflower blue", "periwinkle", "lavender", "orchid",
    "purplish pink",
))  # fmt: skip
DULL = (20.0, (
    "dusty pink", "rosy beige", "khaki", "sage green", "greyish turquoise", "greyish sky blue",
    "greyish blue", "greyish lilac",
))  # fmt: skip


@dataclass(frozen=True)
class Colour:
    """One colour: key, name, coordinates in CIELAB, circle and position on the circle."""

    key: str
    name: str
    a: float
    b: float
    circle: int
    step: int

    @property
    def srgb(self) -> tuple[int, int, int]:
        """The colour in 8-bit sRGB."""
        return srgb(LIGHTNESS, self.a, self.b)

    @property
    def description(self) -> str:
        """Alt text of the colour, for screen readers."""
        return f"A square in {self.name}"

    @property
    def position(self) -> tuple[float, float]:
        """Coordinates of the colour in the space that simulated participants answer from."""
        return self.a / UNIT, self.b / UNIT


def colours() -> list[Colour]:
    """All colours of the demo, circle by circle, hue by hue."""
    result: list[Colour] = []
    for circle, (chroma, names) in enumerate((CLEAR, DULL)):
        for step, name in enumerate(names):
            hue = 2 * math.pi * step / len(names)
            key = f"colour-{len(result) + 1:02d}"
            a, b = chroma * math.cos(hue), chroma * math.sin(hue)
            result.append(Colour(key, name, a, b, circle, step))
    return result


def catches() -> list[tuple[str, str, str]]:
    """Easy questions by key: a hue, its neighbour, and the hue across the circle."""
    hues = [colour.key for colour in colours() if colour.circle == 0]
    count = len(hues)
    return [
        (hues[at], hues[at + 1], hues[(at + count // 2) % count]) for at in range(0, count - 1, 3)
    ]


def srgb(lightness: float, a: float, b: float) -> tuple[int, int, int]:
    """Convert a CIELAB colour to 8-bit sRGB; it must be within the gamut."""
    fy = (lightness + 16) / 116
    x, y, z = (
        white * _inverse(value)
        for white, value in zip(WHITE, (fy + a / 500, fy, fy - b / 200), strict=True)
    )
    linear = (
        3.2404542 * x - 1.5371385 * y - 0.4985314 * z,
        -0.9692660 * x + 1.8760108 * y + 0.0415560 * z,
        0.0556434 * x - 0.2040259 * y + 1.0572252 * z,
    )
    red, green, blue = (round(255 * _companded(value)) for value in linear)
    return red, green, blue


def _inverse(value: float) -> float:
    """Inverse of CIELAB's compression: a cube, with a straight line near black."""
    return value**3 if value > 6 / 29 else 3 * (6 / 29) ** 2 * (value - 4 / 29)


def _companded(value: float) -> float:
    """Encode linear light with the transfer function of sRGB."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{value} is outside the sRGB gamut, 0 to 1")
    return 1.055 * value ** (1 / 2.4) - 0.055 if value > 0.0031308 else 12.92 * value
