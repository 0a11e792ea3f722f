"""Worlds of simulated participants: strengths, shapes, and which ranks count as correct."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.errors import InvalidParameter
from lore_active.simulation.observers import gaussian_space
from lore_active.simulation.worlds import WORLDS, correct_ranks, cut, shares, space


def test_equal_strengths_are_the_space_of_earlier_versions() -> None:
    assert np.array_equal(space("equal", 20, 3, seed=4), gaussian_space(20, 3, seed=4))


@pytest.mark.parametrize("world", [name for name, kind in WORLDS.items() if kind.max_rank is None])
def test_every_world_has_the_same_total_variance(world: str) -> None:
    # The sampling error of a variance of 4,000 values is about 2 %.
    coordinates = space(world, 4000, 3, seed=1)
    assert coordinates.shape == (4000, 3)
    assert coordinates.var(axis=0).sum() == pytest.approx(3.0, rel=0.1)


def test_strengths_fall_by_the_ratio_in_the_name() -> None:
    deviations = space("falling-0.6", 20_000, 3, seed=2).std(axis=0)
    assert deviations[1:] / deviations[:-1] == pytest.approx([0.6, 0.6], rel=0.05)


def test_items_of_a_circle_are_equally_far_from_its_centre() -> None:
    radius = np.linalg.norm(space("circle", 50, 2, seed=3), axis=1)
    assert radius == pytest.approx(np.full(50, np.sqrt(2.0)))


def test_clusters_are_tighter_than_a_gaussian() -> None:
    def nearest(world: str) -> float:
        medians = []
        for seed in range(20):
            coordinates = space(world, 60, 2, seed)
            distances = np.linalg.norm(coordinates[:, np.newaxis] - coordinates, axis=2)
            medians.append(float(np.median(np.sort(distances, axis=1)[:, 5])))
        return float(np.mean(medians))

    assert nearest("clusters") < 0.8 * nearest("equal")


@pytest.mark.parametrize("world, rank", [("circle", 3), ("weak", 1), ("equal", 0)])
def test_impossible_numbers_of_dimensions_are_refused(world: str, rank: int) -> None:
    with pytest.raises(InvalidParameter, match=f"rank is {rank}"):
        space(world, 20, rank, seed=0)


def test_unknown_worlds_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidParameter, match=r"'flat'.*equal.*clusters"):
        space("flat", 20, 2, seed=0)


def test_dimensions_between_half_the_smallest_share_and_that_share_may_be_found_or_not() -> None:
    # Shares of 0.72, 0.20, 0.072 and 0.008.
    axes = np.sqrt(np.array([0.72, 0.20, 0.072, 0.008]))
    coordinates = np.vstack([np.diag(axes), -np.diag(axes)])
    assert shares(coordinates) == pytest.approx([0.72, 0.20, 0.072, 0.008])
    assert correct_ranks(coordinates, 0.10) == (2, 3)
    assert correct_ranks(coordinates, 0.05) == (3, 3)
    assert correct_ranks(coordinates, 0.30) == (1, 2)


def test_a_given_space_is_cut_to_its_strongest_axes_and_scaled_like_the_worlds():
    rng = np.random.default_rng(2)
    turned = rng.normal(size=(40, 3)) * [3.0, 1.0, 0.1] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    kept = cut(turned + 5.0, 2)
    assert kept.shape == (40, 2)
    assert kept.var(axis=0).sum() == pytest.approx(2.0)
    assert shares(kept) == pytest.approx(shares(turned)[:2] / shares(turned)[:2].sum())
    with pytest.raises(InvalidParameter, match="3 dimensions"):
        cut(turned, 4)
