"""How often the learner looks again: when audits and refits are due."""

from __future__ import annotations

# An audit is due when there are this many times the answers of the last one; the first when every
# item has been an anchor about twice.
AUDIT_GROWTH = 1.08
FIRST_AUDIT = 2
REFIT_EVERY = 10
REFIT_SHARE = 0.01
