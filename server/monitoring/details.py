"""One participant's session in detail: every trial, every test, what was decided about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lore_active.growing import NOTHING
from lore_active.response_quality import Evidence, flagged
from lore_active.types import Floats
from server.monitoring.flags import NAMES, statement
from server.monitoring.ledger import PURPOSES, Columns
from server.monitoring.quality import implausible, response_ms
from server.monitoring.table import number
from server.store.sessions import StoredSession


def details(
    stored: StoredSession,
    columns: Columns,
    tests: tuple[Evidence, ...],
    usual_ms: Floats | None,
    floor_ms: float,
    with_names: bool,
) -> dict[str, Any]:
    """For the page; `columns` are the session's. Without names nobody can be recognised."""
    person = stored.person
    return {
        "id": person.id,
        "external": person.external if with_names else None,
        "comment": person.feedback if with_names else "",
        "stage": person.stage,
        "done": person.done,
        "trials": person.trials,
        "excluded": bool(person.excluded),
        "simulated": bool(person.simulated),
        "arrived_at": person.arrived_at,
        "seen_at": person.seen_at,
        "finished_at": stored.finished_at,
        "usual_ms": None if usual_ms is None else [round(one) for one in usual_ms],
        "floor_ms": round(floor_ms),
        "tests": [
            {
                "flag": one.flag,
                "name": NAMES[one.flag],
                "raised": flagged(one),
                "statement": statement(one, floor_ms),
            }
            for one in tests
        ],
        "answers": _answers(columns),
        "decisions": [
            {
                "at": one.at,
                "who": one.who if with_names else "",
                "kind": one.kind,
                "reason": str(one.detail.get("reason", "")) if with_names else "",
            }
            for one in stored.decisions
        ],
    }


def _answers(columns: Columns) -> list[dict[str, Any]]:
    """Trial by trial; `right` and `alike` are None where there is nothing to compare with."""
    measured, odd = response_ms(columns), implausible(columns)
    first: dict[tuple[int, ...], int] = {}
    made = []
    for at in range(len(columns.seq)):
        anchor, left, right, chosen = (
            int(getattr(columns, name)[at]) for name in ("anchor", "left", "right", "chosen")
        )
        purpose = PURPOSES[columns.purpose[at]]
        question = (anchor, *sorted((left, right)))
        made.append(
            {
                "trial": at + 1,
                "at": int(columns.received_at[at]),
                "ms": number(float(measured[at]), 0),
                "purpose": purpose,
                "anchor": anchor,
                "left": left,
                "right": right,
                "chosen": None if chosen == NOTHING else chosen,
                "known": _outcome(int(columns.as_known[at]), chosen),
                "alike": _outcome(int(columns.as_before[at]), chosen)
                if purpose == "repeat"
                else None,
                "repeats": first.get(question) if purpose == "repeat" else None,
                "predicted": number(float(columns.predicted[at]), 2),
                "implausible": bool(odd[at]),
                "blurred": bool(columns.blurred[at]),
            }
        )
        first.setdefault(question, at + 1)
    return made


def _outcome(value: int, chosen: int) -> bool | None:
    return None if value == NOTHING or chosen == NOTHING else bool(value)


def quartiles(columns: Columns, participants: Any) -> Floats | None:
    """Of the response times of these participants; None where there are none."""
    times = response_ms(columns)[np.isin(columns.participant, participants)]
    times = times[~np.isnan(times)]
    return np.percentile(times, [25, 50, 75]) if len(times) else None
