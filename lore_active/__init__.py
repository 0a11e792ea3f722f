"""lore-active: how people organise things, and in how many dimensions, from triplet comparisons."""

from lore_active.errors import InvalidParameter, InvalidTriplets, LoreError, NotFitted
from lore_active.estimator import LORE
from lore_active.learner import Learner, Query
from lore_active.triplets import Triplets, as_triplets

__version__ = "0.1.0"

__all__ = [
    "LORE",
    "InvalidParameter",
    "InvalidTriplets",
    "Learner",
    "LoreError",
    "NotFitted",
    "Query",
    "Triplets",
    "__version__",
    "as_triplets",
]
