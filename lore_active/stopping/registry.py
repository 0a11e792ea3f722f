"""The stopping rules there are. Known without a compiler, since files name them as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lore_active.registry import Entry, Registry

if TYPE_CHECKING:
    from lore_active.stopping.rules import StoppingRule

# Rules are dataclasses, made with those of `confidence`, `audits`, `min_answers`, `max_answers`,
# `smallest_dimension` and `evidence` that they have. Their fields are what a snapshot keeps.
STOPPING_RULES: Registry[StoppingRule] = Registry("stopping rule")
# The rule of studies and commands that name none.
DEFAULT_RULE = "smallest_dimension"

for _entry in (
    Entry["StoppingRule"](
        "rank_settled",
        "Stops when held-out answers and the marginal likelihood prefer one number of dimensions "
        "to its neighbours, audit after audit.",
        "lore_active.stopping.rules:RankSettled",
        references=(
            "Tierney, L., & Kadane, J. B. (1986). Accurate approximations for posterior moments "
            "and marginal densities. Journal of the American Statistical Association, 81(393), "
            "82–86.",
        ),
    ),
    Entry["StoppingRule"](
        "smallest_dimension",
        "Stops when a further dimension that carries a given share of the differences between "
        "items is ruled out.",
        "lore_active.stopping.smallest_dimension:SmallestDimension",
        methods="the number of dimensions had held through consecutive audits, fewer dimensions "
        "predicted held-out answers worse, and a further dimension of the smallest size of "
        "interest had been ruled out by its Bayes factor, computed by sampling",
        references=(
            "Bennett, C. H. (1976). Efficient estimation of free energy differences from Monte "
            "Carlo data. Journal of Computational Physics, 22(2), 245–268.",
            "Gelman, A., & Meng, X.-L. (1998). Simulating normalizing constants: From importance "
            "sampling to bridge sampling to path sampling. Statistical Science, 13(2), 163–185.",
        ),
    ),
    Entry["StoppingRule"](
        "unchanged",
        "Stops when the number of dimensions has not changed for some audits; for comparison only.",
        "lore_active.stopping.rules:Unchanged",
        methods="the number of dimensions had been the same in some consecutive audits",
    ),
):
    STOPPING_RULES.register(_entry)


def rule_of(criteria: Iterable[str]) -> str | None:
    """The rule that has these criteria, for studies that did not store its name; None if unknown.

    Only rules from before names were stored have to be recognised.
    """
    names = set(criteria)
    if "further_dimension" in names:
        return "smallest_dimension"
    if names & {"preferred_to_more", "bayes_factor_more", "likelier_than_more"}:
        return "rank_settled"
    return None


def stopping_rule(name: str, **settings: Any) -> StoppingRule:
    """A rule with those of the settings that it has; None leaves a setting at its default."""
    make: Any = STOPPING_RULES.maker(name)
    known = {field.name for field in fields(make)}
    rule: StoppingRule = make(
        **{key: value for key, value in settings.items() if key in known and value is not None}
    )
    return rule
