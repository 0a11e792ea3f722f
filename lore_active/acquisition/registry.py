"""Registry of the selectors. Free of compiled code, since web pages and files name them too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lore_active.registry import Entry, Registry

if TYPE_CHECKING:
    from lore_active.acquisition.state import Selector

SELECTORS: Registry[Selector] = Registry("selector")

for _entry in (
    Entry["Selector"](
        "fisher",
        "Selects the questions expected to most reduce the variance of predictions.",
        "lore_active.acquisition.selectors:FisherSelector",
        methods="We selected the question expected to most reduce the variance of the predicted "
        "margins of random questions, weighted by how undecided these were, under the inverse "
        "Fisher information of the coordinates (cf. MacKay, 1992; with more than 4,000 "
        "coordinates, the question with the smallest predicted margin)",
        references=(
            "MacKay, D. J. C. (1992). Information-based objective functions for active data "
            "selection. Neural Computation, 4(4), 590–604.",
        ),
    ),
    Entry["Selector"](
        "uncertainty",
        "Selects the questions whose answers the model is least certain about.",
        "lore_active.acquisition.selectors:UncertaintySelector",
        methods="We selected the question with the smallest predicted margin (uncertainty "
        "sampling; Lewis & Gale, 1994)",
        references=(
            "Lewis, D. D., & Gale, W. A. (1994). A sequential algorithm for training text "
            "classifiers. Proceedings of SIGIR '94, 3–12.",
        ),
    ),
    Entry["Selector"](
        "local",
        "Selects near-ties among neighbouring items, which reveal a weak further dimension.",
        "lore_active.acquisition.local:LocalSelector",
        methods="We selected the question whose answer would depend most on a further dimension: "
        "the largest variance that a further coordinate of each item would add to the predicted "
        "margin, weighted by the variance of the answer",
    ),
    Entry["Selector"](
        "infotuple",
        "Selects the questions whose answers carry the most information about their distances.",
        "lore_active.acquisition.infotuple:InfoTupleSelector",
        methods="For each anchor we selected, among random questions, the one with the largest "
        "mutual information between its answer and its distances (InfoTuple; Canal, Fenu & "
        "Rozell, 2020)",
        references=(
            "Canal, G., Fenu, S., & Rozell, C. (2020). Active ordinal querying for tuplewise "
            "similarity learning. Proceedings of the AAAI Conference on Artificial Intelligence, "
            "34(4), 3332–3340.",
        ),
    ),
    Entry["Selector"](
        "random",
        "Selects questions uniformly at random.",
        "lore_active.acquisition.selectors:RandomSelector",
    ),
):
    SELECTORS.register(_entry)
