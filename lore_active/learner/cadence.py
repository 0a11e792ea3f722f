"""How often the learner looks again: when audits and refits are due."""

from __future__ import annotations

# An audit is due when there are this many times the answers of the last one; the first when every
# item has been an anchor about twice.
AUDIT_GROWTH = 1.08
FIRST_AUDIT = 2
REFIT_EVERY = 10
REFIT_SHARE = 0.01
# Where audits take long, they may take this share of the time; those that take no longer than
# UNNOTICED_SECONDS are made whenever they are due.
AUDIT_TIME = 0.25
UNNOTICED_SECONDS = 5.0


def rest_after_audit(seconds: float) -> float:
    """Seconds that belong to the answers after an audit that took so long."""
    return max(0.0, seconds - UNNOTICED_SECONDS) * (1.0 - AUDIT_TIME) / AUDIT_TIME
