"""Schedule of the learner: when audits and refits are due."""

from __future__ import annotations

from math import ceil
from typing import Literal

from lore_active.questions.kinds import TRIPLET, Kind

Work = Literal["audit", "refit"]

# An audit is due when the number of answers has grown by this factor since the last one; the
# first, at this many answers per item. Answers that carry more than a triplet count for more.
AUDIT_GROWTH = 1.08
FIRST_AUDIT = 2
REFIT_EVERY = 10
REFIT_SHARE = 0.01
# Maximum share of computing time for long audits; audits of at most UNNOTICED_SECONDS are not
# limited.
AUDIT_TIME = 0.25
UNNOTICED_SECONDS = 5.0


def first_audit(n_objects: int, kind: Kind = TRIPLET) -> int:
    """Number of answers at which the first audit is due."""
    return ceil(FIRST_AUDIT * n_objects / kind.bits)


def due(
    answers: int,
    unfitted: int,
    audited: int | None,
    n_objects: int,
    *,
    resting: bool = False,
    auditing: bool = False,
    changed: bool = False,
    deserted: bool = False,
    kind: Kind = TRIPLET,
) -> Work | None:
    """Say what is due; see `Learner.due`.

    `answers` count, `unfitted` of them since the last fit, `audited` were there at the last audit.
    """
    if audited is None:
        # The first audit is due however long audits take.
        return "audit" if answers >= first_audit(n_objects, kind) and not auditing else None
    if answers >= AUDIT_GROWTH * audited and not (resting or auditing):
        return "audit"
    if unfitted >= max(REFIT_EVERY / kind.bits, REFIT_SHARE * answers):
        return "refit"
    if changed and not auditing:
        return "audit"
    return "refit" if deserted and unfitted else None


def rest_after_audit(seconds: float) -> float:
    """Seconds to wait before the next audit, after one that took `seconds`."""
    return max(0.0, seconds - UNNOTICED_SECONDS) * (1.0 - AUDIT_TIME) / AUDIT_TIME
