"""Schedule of the learner: when audits and refits are due."""

from __future__ import annotations

# An audit is due when the number of answers has grown by this factor since the last one; the
# first, at this many answers per item.
AUDIT_GROWTH = 1.08
FIRST_AUDIT = 2
REFIT_EVERY = 10
REFIT_SHARE = 0.01
# Maximum share of computing time for long audits; audits of at most UNNOTICED_SECONDS are not
# limited.
AUDIT_TIME = 0.25
UNNOTICED_SECONDS = 5.0


def rest_after_audit(seconds: float) -> float:
    """Seconds to wait before the next audit, after one that took `seconds`."""
    return max(0.0, seconds - UNNOTICED_SECONDS) * (1.0 - AUDIT_TIME) / AUDIT_TIME
