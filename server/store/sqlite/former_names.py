"""Names in studies and logs of earlier versions, and the current ones.

Stored rows are never rewritten: a hash chain covers them. Tables and columns were renamed by a
migration; events and JSON keep their names, and are read by what is here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
