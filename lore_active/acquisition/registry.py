"""The selectors there are. Known without a compiler, since pages and files name them as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lore_active.registry import Entry, Registry

if TYPE_CHECKING:
    from lore_active.acquisition.selectors import Selector

SELECTORS: Registry[Selector] = Registry("selector")

for _entry in (
    Entry["Selector"](
        "fisher",
        "Chooses the questions expected to reduce the uncertainty of predictions most.",
        "lore_active.acquisition.selectors:FisherSelector",
        references=(
            "MacKay, D. J. C. (1992). Information-based objective functions for active data "
            "selection. Neural Computation, 4(4), 590–604.",
        ),
    ),
    Entry["Selector"](
        "uncertainty",
        "Chooses the questions whose answers the model is least sure of.",
        "lore_active.acquisition.selectors:UncertaintySelector",
        references=(
            "Lewis, D. D., & Gale, W. A. (1994). A sequential algorithm for training text "
            "classifiers. Proceedings of SIGIR '94, 3–12.",
        ),
    ),
    Entry["Selector"](
        "random",
        "Chooses questions uniformly at random.",
        "lore_active.acquisition.selectors:RandomSelector",
    ),
):
    SELECTORS.register(_entry)
