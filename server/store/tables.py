"""Which tables hold a study's data: what a log holds, and what the hash chain covers."""

from __future__ import annotations

# In an order in which rows can be put back. Left out: the worker's snapshot and health, which are
# made again, and what opens doors (sessions, links, attempts).
TABLES = (
    "items",
    "state",
    "participants",
    "queries",
    "answers",
    "priors",
    "prior_answers",
    "events",
    "steps",
    "models",
    "decisions",
)
# Of the others: id.
KEYS = {"answers": "seq", "models": "version", "decisions": "step", "chain_salts": "participant"}
# Never in a log, and drawn again when one is loaded.
SECRET = {"participants": "token", "queries": "token"}
# The chain itself, in the order in which a log holds it.
SALTS = "chain_salts"
CHAIN = (SALTS, "chain", "chain_head")


def key_of(table: str) -> str:
    """The column that numbers a table's rows; SQLite's rowid by another name."""
    return KEYS.get(table, "id")
