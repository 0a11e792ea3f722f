"""The map that participants may see at the end: positions of items and of their labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lore_active.types import Floats
from server.monitor.map import damage, embedding_of
from server.store import collection, models
from server.store.database import Database
from server.study.config import Item, LoadedStudy

# A map of fewer participants would reveal too much about each of them.
MIN_PARTICIPANTS = 5
WIDTH, MAX_HEIGHT, MARGIN = 480.0, 400.0, 40.0
LINE_HEIGHT, LETTER = 18.0, 8.0
MAX_LETTERS = 24
RADIUS = 4.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class MapPlace:
    """An item on the map: its number, its position, and that of its label, if there is room."""

    item: int
    x: float
    y: float
    image: float
    """Width and height of its image; 0: a dot."""
    label: str
    label_x: float
    label_y: float


@dataclass(frozen=True)
class ClosingMap:
    """The drawing, and a text alternative: each item with its nearest neighbour."""

    width: float
    height: float
    places: tuple[MapPlace, ...]
    nearest: tuple[tuple[str, str], ...]


def closing_map(database: Database, study: LoadedStudy) -> ClosingMap | None:
    """The latest map; None before there is one, or while too few participants have answered."""
    model, participants = database.read(
        lambda c: (models.latest_model(c), collection.participants_with_answers(c))
    )
    count = len(study.items)
    if model is None or model.rank == 0 or participants < MIN_PARTICIPANTS or damage(model, count):
        return None
    z = embedding_of(model, count)
    return drawn(z, study.items)


def drawn(z: Floats, items: tuple[Item, ...]) -> ClosingMap:
    """The map of items at these positions (items × rank): the first two axes, as large as fits."""
    flat = np.zeros((len(z), 2))
    flat[:, : min(2, z.shape[1])] = z[:, :2]
    low, size = flat.min(axis=0), np.ptp(flat, axis=0)
    room = np.array([WIDTH - 2 * MARGIN, MAX_HEIGHT - 2 * MARGIN])
    scale = float(np.min(room[size > 0] / size[size > 0])) if (size > 0).any() else 1.0
    height = float(size[1] * scale + 2 * MARGIN)
    spare = (room[0] - size[0] * scale) / 2
    # Coordinates increase upwards, pixels downwards.
    x = MARGIN + spare + (flat[:, 0] - low[0]) * scale
    y = height - MARGIN - (flat[:, 1] - low[1]) * scale
    image = float(np.clip(0.5 * np.sqrt(WIDTH * height / len(items)), 12.0, 56.0))
    return ClosingMap(
        WIDTH, round(height, 1), tuple(_places(x, y, items, image, height)), _nearest(z, items)
    )


def _places(
    x: Floats, y: Floats, items: tuple[Item, ...], image: float, height: float
) -> list[MapPlace]:
    """Images and labels where they do not overlap; dots for all other items."""
    dots = [(a - RADIUS, b - RADIUS, a + RADIUS, b + RADIUS) for a, b in zip(x, y, strict=True)]
    taken: list[Box] = []
    places = []
    for number, item in enumerate(items):
        at, up = float(x[number]), float(y[number])
        half = image / 2
        own: Box = (at - half, up - half, at + half, up + half)
        if item.kind == "image" and not any(_meet(own, other) for other in taken):
            taken.append(own)
            places.append(_place(number, at, up, image))
            continue
        label = "" if item.kind == "image" else _short(name_of(item))
        others = [*taken, *dots[:number], *dots[number + 1 :]]
        spot = _free(at, up, len(label) * LETTER, others, height) if label else None
        if spot is None:
            places.append(_place(number, at, up))
            continue
        taken.append(spot)
        middle = ((spot[0] + spot[2]) / 2, spot[3] - LINE_HEIGHT / 4)
        places.append(_place(number, at, up, label=label, spot=middle))
    return places


def _place(
    number: int,
    x: float,
    y: float,
    image: float = 0.0,
    label: str = "",
    spot: tuple[float, float] = (0.0, 0.0),
) -> MapPlace:
    left, up = (round(value, 1) for value in spot)
    return MapPlace(number, round(x, 1), round(y, 1), round(image, 1), label, left, up)


def _free(x: float, y: float, width: float, others: list[Box], height: float) -> Box | None:
    """A free place for a label beside its dot, inside the map."""
    away = RADIUS + 2
    middle = min(max(0.0, x - width / 2), WIDTH - width)
    for left, top in (
        (middle, y - away - LINE_HEIGHT),
        (middle, y + away),
        (x + away, y - LINE_HEIGHT / 2),
        (x - away - width, y - LINE_HEIGHT / 2),
    ):
        box = (left, top, left + width, top + LINE_HEIGHT)
        inside = left >= 0 and box[2] <= WIDTH and top >= 0 and box[3] <= height
        if inside and not any(_meet(box, other) for other in others):
            return box
    return None


def _meet(first: Box, other: Box) -> bool:
    return (
        first[0] < other[2] and other[0] < first[2] and first[1] < other[3] and other[1] < first[3]
    )


def name_of(item: Item) -> str:
    """The name of an item for participants; never the name of its file."""
    return " ".join((item.text or item.alt).split())


def _short(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1].rstrip() + "…"


def _nearest(z: Floats, items: tuple[Item, ...]) -> tuple[tuple[str, str], ...]:
    """(name, name of the nearest neighbour) of each named item, over all dimensions."""
    named = [number for number, item in enumerate(items) if name_of(item)]
    if len(named) < 2:
        return ()
    own = z[named]
    closest = []
    for row, number in enumerate(named):
        distances = ((own - own[row]) ** 2).sum(axis=1)
        distances[row] = np.inf
        other = named[int(distances.argmin())]
        closest.append((_short(name_of(items[number])), _short(name_of(items[other]))))
    return tuple(closest)
