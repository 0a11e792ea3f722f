"""Tables that hold a study's data: those in a log, and those covered by the hash chain."""

from __future__ import annotations

# In an order in which rows can be inserted. Omitted: the worker's snapshot and heartbeat, which are
# rebuilt, and everything about authentication (sessions, links, attempts).
TABLES = (
    "items",
    "state",
    "participants",
    "queries",
    "answers",
    "imported_files",
    "imported_answers",
    "events",
    "steps",
    "models",
    "decisions",
)
# Key columns; `id` in all other tables.
KEYS = {"answers": "seq", "models": "version", "decisions": "step", "chain_salts": "participant"}
# Never in a log; generated again when one is imported.
SECRET = {"participants": "token", "queries": "token"}
# The chain itself, in the order of a log.
SALTS = "chain_salts"
CHAIN = (SALTS, "chain", "chain_head")


def key_of(table: str) -> str:
    """Return the key column of a table, an alias of SQLite's rowid."""
    return KEYS.get(table, "id")
