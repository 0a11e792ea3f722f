"""Worlds: the spaces that simulated participants perceive, named once for every command.

Real percepts have dimensions of falling strength, circles (hues) and clusters (families of smells),
so a stopping rule that is right where all dimensions are equally strong may be wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.types import Floats

# Standard deviation of the last dimension of the world "weak" relative to the others.
WEAK = 0.3
# Standard deviation within a cluster, relative to that of the clusters' centres.
WITHIN_CLUSTER = 0.25
MIN_CLUSTERS, MAX_CLUSTERS = 3, 5


@dataclass(frozen=True)
class World:
    """A kind of space, and which numbers of dimensions it can have.

    `draw` gets the number of items, the number of dimensions and a generator.
    """

    name: str
    description: str
    draw: Callable[[int, int, np.random.Generator], Floats]
    min_rank: int = 1
    max_rank: int | None = None


def strengths(items: int, deviations: Floats, rng: np.random.Generator) -> Floats:
    """Gaussian coordinates with these relative standard deviations.

    The total variance is that of as many dimensions of variance 1, so that noise means the same.
    """
    scale = deviations * np.sqrt(len(deviations) / (deviations**2).sum())
    return np.asarray(rng.normal(0.0, 1.0, (items, len(deviations))) * scale)


def _falling(ratio: float) -> Callable[[int, int, np.random.Generator], Floats]:
    return lambda items, rank, rng: strengths(items, ratio ** np.arange(rank, dtype=float), rng)


def _weak(items: int, rank: int, rng: np.random.Generator) -> Floats:
    return strengths(items, np.append(np.ones(rank - 1), WEAK), rng)


def _circle(items: int, rank: int, rng: np.random.Generator) -> Floats:
    """Items at random angles of a circle whose radius gives each dimension variance 1."""
    angle = rng.uniform(0.0, 2.0 * np.pi, items)
    return np.asarray(np.sqrt(float(rank)) * np.column_stack([np.cos(angle), np.sin(angle)]))


def _clusters(items: int, rank: int, rng: np.random.Generator) -> Floats:
    # Fewer centres than rank + 1 would lie in a space of fewer dimensions.
    count = int(rng.integers(max(MIN_CLUSTERS, rank + 1), max(MAX_CLUSTERS, rank + 1) + 1))
    centres = rng.normal(0.0, 1.0, (count, rank))
    member = np.arange(items) % count
    space = centres[member] + rng.normal(0.0, WITHIN_CLUSTER, (items, rank))
    return np.asarray(space * np.sqrt(rank / space.var(axis=0).sum()))


WORLDS: dict[str, World] = {
    world.name: world
    for world in (
        World("equal", "Dimensions of equal strength.", _falling(1.0)),
        World("falling-0.8", "Each dimension 0.8 times as strong as the last.", _falling(0.8)),
        World("falling-0.6", "Each dimension 0.6 times as strong as the last.", _falling(0.6)),
        World("falling-0.5", "Each dimension half as strong as the last.", _falling(0.5)),
        World("weak", "The last dimension 0.3 times as strong as the others.", _weak, 2),
        World("circle", "A circle, like hues: two dimensions.", _circle, 2, 2),
        World("clusters", "Three to five clusters of items.", _clusters),
    )
}


def space(world: str, items: int, rank: int, seed: int) -> Floats:
    """Draw the coordinates of items in a world.

    Parameters
    ----------
    world : str
        A key of `WORLDS`.
    items : int
        Number of items.
    rank : int
        Number of dimensions.
    seed : int
        Seed of the coordinates.

    Returns
    -------
    array of shape (items, rank)

    Raises
    ------
    InvalidParameter
        If there is no such world, or it cannot have this number of dimensions.

    Examples
    --------
    >>> from lore_active.simulation.worlds import space
    >>> space("falling-0.6", items=30, rank=3, seed=1).shape
    (30, 3)
    """
    if world not in WORLDS:
        raise InvalidParameter(f"world is {world!r}, but must be one of {', '.join(WORLDS)}.")
    kind = WORLDS[world]
    high = np.inf if kind.max_rank is None else kind.max_rank
    if not kind.min_rank <= rank <= high:
        allowed = str(kind.min_rank) if kind.min_rank == high else f"at least {kind.min_rank}"
        raise InvalidParameter(f"rank is {rank}, but must be {allowed} in the world {world!r}.")
    return kind.draw(items, rank, np.random.default_rng(seed))


def cut(coordinates: Floats, rank: int) -> Floats:
    """The strongest principal axes of given coordinates, with the total variance of `space`.

    Parameters
    ----------
    coordinates : array of shape (items, dimensions)
        Coordinates of the items, such as an embedding by another method.
    rank : int
        Number of axes to keep.

    Returns
    -------
    array of shape (items, rank)

    Raises
    ------
    InvalidParameter
        If there are fewer axes than that.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.simulation.worlds import cut
    >>> cut(np.array([[0.0, 0.0], [4.0, 1.0], [8.0, 0.0]]), rank=1).shape
    (3, 1)
    """
    left, size, _ = np.linalg.svd(coordinates - coordinates.mean(axis=0), full_matrices=False)
    largest_rank = int((size > 1e-9 * size.max(initial=0.0)).sum())
    if not 1 <= rank <= largest_rank:
        raise InvalidParameter(
            f"rank is {rank}, but the given space has {largest_rank} dimensions, so it must be "
            f"from 1 to {largest_rank}."
        )
    kept = left[:, :rank] * size[:rank]
    return np.asarray(kept * np.sqrt(rank / kept.var(axis=0).sum()))


def shares(coordinates: Floats) -> Floats:
    """Share of the variance of a space on each of its principal axes, largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.simulation.worlds import shares
    >>> shares(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).tolist()
    [0.8, 0.2]
    """
    squares = np.linalg.svd(coordinates - coordinates.mean(axis=0), compute_uv=False) ** 2
    total = float(squares.sum())
    return np.asarray(squares / total if total > 0.0 else squares)


def correct_ranks(coordinates: Floats, smallest: float) -> tuple[int, int]:
    """Smallest and largest number of dimensions that is correct for dimensions of interest.

    Dimensions with a share of at least `smallest` must be found; those between half of it and
    `smallest` may be.
    """
    carried = shares(coordinates)
    return int((carried >= smallest).sum()), int((carried >= 0.5 * smallest).sum())
