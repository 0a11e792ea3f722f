"""Clusters of a map, and coordinates that have a part in common within them."""

from __future__ import annotations

import numpy as np
import pytest

from lore_active.rank.clusters import Clusters, clusters, mixing
from lore_active.simulation.worlds import space


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("world", ["equal", "falling-0.6", "weak"])
def test_a_cloud_has_no_clusters(world, seed):
    assert clusters(space(world, 50, 3, 100 + seed)) is None


@pytest.mark.parametrize("seed", range(8))
def test_tight_groups_are_found_as_they_are(seed):
    rng = np.random.default_rng(seed)
    member = np.arange(48) % 4
    centres = 3.0 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    found = clusters(centres[member] + rng.normal(size=(48, 3)))
    assert found is not None
    # The same partition, whatever the clusters are called.
    assert len(set(zip(found.member.tolist(), member.tolist(), strict=True))) == 4
    # Variances 9 between clusters and 1 within.
    assert found.between == pytest.approx(0.9, abs=0.03)


def test_few_items_have_no_clusters():
    assert clusters(np.repeat(np.eye(3), 4, axis=0) + 0.01 * np.arange(12)[:, None]) is None


FOUND = Clusters(np.array([0, 1, 0, 2, 1, 0, 0], dtype=np.int32), 0.7)


def test_mixed_coordinates_have_the_covariance_that_is_meant():
    mixed = mixing(FOUND, 7, rank=1)
    same = FOUND.member[:, None] == FOUND.member
    root = mixed.own * np.eye(7) + mixed.common[FOUND.member] * same
    assert root @ root == pytest.approx(0.7 * same + 0.3 * np.eye(7))
    z = np.random.default_rng(1).normal(size=(7, 2))
    assert mixed.inverse(root @ z) == pytest.approx(z)
    assert 1.0 < mixed.effective < 7.0


def test_clusters_that_the_map_can_hold_apart_change_nothing():
    """Three clusters lie in a plane: beyond two dimensions there is nothing to separate them by."""
    assert len(mixing(FOUND, 7, rank=1).member) == 7
    mixed = mixing(FOUND, 7, rank=2)
    z = np.arange(14.0).reshape(7, 2)
    assert mixed.inverse(z) is z
    assert mixed.effective == 7.0
    assert len(mixing(None, 7, rank=1).member) == 0
