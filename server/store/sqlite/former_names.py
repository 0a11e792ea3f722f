"""What studies and logs of earlier versions call otherwise, or lack, in current terms.

Stored values are never rewritten: a hash chain covers them. Tables and columns were renamed by a
migration, and columns that were added later were filled; events and JSON keep their names, and are
read by what is here, as are rows that come from elsewhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from server.store.sqlite.item_lists import listed, question_key

# The migration that renamed tables and columns.
RENAMED_BY = 8
_TABLES = {"priors": "imported_files", "prior_answers": "imported_answers"}
_COLUMNS = {
    "decisions": {"words": "message"},
    "models": {"picture": "aligned", "spread": "covariance"},
    "participants": {"practised": "practice_done", "rested": "break_done"},
    "imported_files": {"taken_out": "removed"},
    "imported_answers": {"prior": "file"},
}
_EVENTS = {
    "set aside": "quarantine",
    "prior": "import",
    "prior_out": "import_removed",
    "prior_lost": "import_lost",
    "prior_out_lost": "import_removed_lost",
}
_DETAILS = {"prior": "number"}
# SQL for the number of the imported file that an event is about.
IMPORT_NUMBER = "coalesce(json_extract(detail, '$.number'), json_extract(detail, '$.prior'))"


def current_table(name: str) -> str:
    """Return the current name of a table."""
    return _TABLES.get(name, name)


def current_column(table: str, name: str) -> str:
    """Return the current name of a column; the table has its current name."""
    return _COLUMNS.get(table, {}).get(name, name)


def current_event(kind: str) -> str:
    """Return the current name of a kind of event."""
    return _EVENTS.get(kind, kind)


def current_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's details with their current names."""
    return {_DETAILS.get(name, name): value for name, value in detail.items()}


def event_kinds(*kinds: str) -> str:
    """Return the SQL list of these kinds of events, each with its former names."""
    former = [name for name, kind in _EVENTS.items() if kind in kinds]
    return ", ".join(f"'{name}'" for name in (*kinds, *former))


def complete_row(c: sqlite3.Connection, table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Add the columns that a row lacks if it is of a version in which all questions were triplets.

    Args of the wrong type raise TypeError or UnicodeEncodeError, as SQLite's own do.
    """
    if table == "queries" and row.get("options") is None and "left" in row:
        options: Any = (row["left"], row.get("right"))
        known = row.get("nearer")
        return {
            **row,
            "options": listed(options),
            "known": None if known is None else listed((known,)),
            "key": question_key(row.get("anchor"), options),
        }
    if table == "answers" and row.get("outcome") is None and "side" in row:
        side = row["side"]
        if side in ("skip", "timeout"):
            return {**row, "outcome": side, "chosen": None}
        if side in ("left", "right"):
            sql = f"SELECT json_array({side}) FROM queries WHERE id = ?"
            asked = c.execute(sql, (row.get("query"),)).fetchone()
            return {**row, "outcome": "chosen", "chosen": "[]" if asked is None else asked[0]}
    return row


def model_summary(stored: str) -> dict[str, Any]:
    """Parse the summary of a model, with current names."""
    summary: dict[str, Any] = json.loads(stored)
    # Earlier versions had one accuracy, which counted questions without a prediction one half.
    former = summary.pop("progressive", None)
    if former is not None:
        summary.setdefault("prequential", former)
    for row in summary.get("evidence", ()):
        if "worse" in row:
            row["difference"] = row.pop("worse")
    return summary
