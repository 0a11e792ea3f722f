"""Clusters of items in a map, which a prior for further coordinates has to know.

Items of a family (citrus smells, say) lie close together, in dimensions that have not been found
as well. A prior under which the coordinates of all items are independent expects them to differ:
answers about neighbours then speak against any further dimension, also against one that separates
the families.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lore_active.types import Floats, Indices

# A map has clusters if they gain this much log likelihood per item, beyond what it costs to say
# which item is in which. Of maps of 15 and more items that were drawn without clusters, few gained
# more than 0.1; circles do, whose arcs then count as clusters.
MIN_GAIN, MIN_ITEMS = 0.15, 15
MAX_CLUSTERS, MIN_SIZE = 5, 3
# Share of the variance that is between clusters: no more than this is assumed of any dimension.
MAX_BETWEEN = 0.95


class Clusters(NamedTuple):
    """Which cluster each item is in, and the share of the variance that is between clusters."""

    member: Indices
    between: float


def clusters(z: Floats) -> Clusters | None:
    """Find the clusters of a map, if it has any.

    Ward's (1963) hierarchical clustering, cut where a mixture of equal spherical Gaussians has the
    highest classification likelihood; compared with one Gaussian.

    Parameters
    ----------
    z : array of shape (n_items, n_dimensions)
        Map of the items.

    Examples
    --------
    >>> import numpy as np
    >>> from lore_active.rank.clusters import clusters
    >>> corners = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> jitter = np.random.default_rng(1).normal(size=(30, 2))
    >>> np.bincount(clusters(corners[np.arange(30) % 3] + jitter).member).tolist()
    [10, 10, 10]
    """
    # Importing it takes longer than most commands do.
    from scipy.cluster.hierarchy import fcluster, linkage

    items, axes = z.shape
    if items < MIN_ITEMS:
        return None
    z = z - z.mean(axis=0)
    variances = np.maximum((z**2).sum(axis=0) / (items - 1), 1e-12)
    tree = linkage(z, "ward")
    best, found = MIN_GAIN * items, None
    for count in range(2, min(MAX_CLUSTERS, items // MIN_SIZE) + 1):
        member = fcluster(tree, count, "maxclust") - 1
        sizes = np.bincount(member)
        centres = np.array([z[member == c].mean(axis=0) for c in range(len(sizes))])
        within = ((z - centres[member]) ** 2).sum() / (axes * (items - len(sizes)))
        within = max(float(within), 1e-12)
        gain = 0.5 * (items - len(sizes)) * float(np.log(variances / within).sum())
        gain += float((sizes * np.log(sizes / items)).sum())
        if gain > best:
            between = 1.0 - within * axes / float(variances.sum())
            best = gain
            found = Clusters(member.astype(np.int32), min(max(between, 0.0), MAX_BETWEEN))
    return found


class Mixing(NamedTuple):
    """Coordinates with a common part in each cluster, from independent ones.

    Each is `own` times the independent coordinate plus `common` (by cluster) times the sum over the
    cluster. Without clusters `member` is empty, and coordinates stay as they are.
    """

    member: Indices
    own: float
    common: Floats
    effective: float

    def inverse(self, z: Floats) -> Floats:
        """Independent coordinates from those of the items."""
        if not len(self.member):
            return z
        sizes = np.bincount(self.member)
        # The eigenvalues of the mixing are `own`, and in each cluster one more.
        largest = self.own + sizes * self.common
        common = (1.0 / largest - 1.0 / self.own) / sizes
        sums = np.zeros((len(sizes), *z.shape[1:]))
        np.add.at(sums, self.member, z)
        return np.asarray(z / self.own + (common[:, None] * sums)[self.member])


def mixing(found: Clusters | None, items: int, rank: int) -> Mixing:
    """The square root of a covariance that is the share between clusters within each of them.

    Clusters lie in a space of one dimension fewer than there are of them. Where these have been
    found, a further dimension cannot separate clusters, and coordinates are independent.
    `effective` is the number of independent coordinates that vary as much as these.
    """
    if found is None or found.member.max() + 1 < rank + 2:
        return Mixing(np.empty(0, dtype=np.int32), 1.0, np.empty(0), float(items))
    sizes, between = np.bincount(found.member), found.between
    own = np.sqrt(1.0 - between)
    common = (np.sqrt(1.0 - between + between * sizes) - own) / sizes
    squares = items + between**2 * float((sizes * (sizes - 1.0)).sum())
    return Mixing(found.member, float(own), common, items**2 / squares)
