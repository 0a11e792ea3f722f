"""How much is still to come: a rough forecast of the answers until the rank is settled."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any

from lore_active.pacing import AUDIT_GROWTH

# Evidence fainter than this, in standard errors or log odds, may as well turn round: nothing to go
# by.
FAINTEST = 0.5
# How many times the answers it takes to make evidence twice as strong, as a power of two.
POWERS = {
    "preferred_to_fewer": 2,
    "preferred_to_more": 2,
    "likelier_than_fewer": 1,
    "likelier_than_more": 1,
}
# Nobody should plan by a forecast of many times what there is.
FARTHEST = 8.0


@dataclass(frozen=True)
class Outlook:
    """Answers still to be collected, and the criterion they are for; None: it cannot be told."""

    answers: int | None
    waits_for: str


def outlook(reasons: list[dict[str, Any]], fitted: int, collected: int) -> Outlook:
    """A forecast from the criteria as they stand.

    Evidence in standard errors grows with the root of the answers, log odds with the answers, and
    an audit comes with every 8 % more. `fitted` answers count for the model out of `collected`.
    """
    open_ones = [one for one in reasons if not one["passed"]]
    if not reasons or fitted == 0:
        return Outlook(None, "")
    if not open_ones:
        return Outlook(0, "")
    needs = {one["name"]: _wanted(one, fitted) for one in open_ones}
    unknown = [name for name, need in needs.items() if need is None]
    if unknown:
        return Outlook(None, unknown[0])
    slowest = max(needs, key=lambda name: needs[name] or 0.0)
    wanted = needs[slowest] or 0.0
    if wanted > FARTHEST * fitted:
        return Outlook(None, slowest)
    more = max(1.0, (wanted - fitted) * max(collected, fitted) / fitted)
    return Outlook(_rounded(more), slowest)


def _wanted(criterion: dict[str, Any], fitted: int) -> float | None:
    """How many fitted answers it may take until this criterion holds."""
    value, threshold = float(criterion["value"]), float(criterion["threshold"])
    name = criterion["name"]
    if name == "answers":
        return threshold
    if name == "audits_unchanged":
        return float(fitted * AUDIT_GROWTH ** (threshold - value))
    if name in POWERS:
        if not isfinite(value) or value < FAINTEST:
            return None
        return float(fitted * (threshold / value) ** POWERS[name])
    if name == "items_seen" and value > 0:
        return fitted * (1.0 + 0.1 * log(1.0 + threshold - value))
    return None


def _rounded(count: float) -> int:
    """To two digits at most: it is a forecast."""
    size = 10 ** max(0, len(str(int(count))) - 2)
    return int(-(-count // size) * size)
