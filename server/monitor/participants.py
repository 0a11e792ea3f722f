"""Participants on the monitor: the table, and one session in detail."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from lore_active.participants.response_quality import Evidence, flagged
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.row_table import NOTHING
from lore_active.types import Floats
from server.monitor.answers import PURPOSES, Columns
from server.monitor.flags import names, statement
from server.monitor.quality import Quality, implausible, response_ms
from server.status.counting import is_under_way, present
from server.store.sessions import StoredSession
from server.store.summaries import ParticipantSummary


class Rows:
    """Rows of the table; only those that changed are made again."""

    def __init__(self, idle_minutes: int, kind: Kind) -> None:
        self._idle_minutes, self._kind = idle_minutes, kind
        self._made: dict[int, tuple[ParticipantSummary, Quality, bool, dict[str, Any]]] = {}

    def row(self, participant: ParticipantSummary, quality: Quality, now: int) -> dict[str, Any]:
        """The row of one participant."""
        here = is_under_way(participant, *present(now, self._idle_minutes))
        made = self._made.get(participant.id)
        if made is None or made[:3] != (participant, quality, here):
            made = (participant, quality, here, _row(participant, quality, here, self._kind))
            self._made[participant.id] = made
        return made[3]


def _row(
    participant: ParticipantSummary, quality: Quality, here: bool, kind: Kind
) -> dict[str, Any]:
    return {
        "id": participant.id,
        "external": participant.external,
        "stage": participant.stage,
        "here": here,
        "done": participant.done,
        "trials": participant.trials,
        "excluded": bool(participant.excluded),
        "simulated": bool(participant.simulated),
        "seen_at": participant.seen_at,
        "catch": [quality.catch_right, quality.catches],
        "repeats": [quality.repeats_alike, quality.repeats],
        "overlap": number(quality.overlap, 2),
        "place": _preferred(quality, kind),
        "median_ms": number(quality.median_ms, 0),
        "fast": number(quality.fast, 2),
        "implausible": number(quality.implausible, 2),
        "blurred": number(quality.blurred, 2),
        "agreement": number(quality.agreement, 2),
        "flags": list(quality.flags),
        "evidence": [statement(evidence, quality.floor_ms) for evidence in quality.evidence],
        "feedback": participant.feedback,
    }


def _preferred(quality: Quality, kind: Kind) -> list[float | None] | None:
    """The place of the option that was chosen most often, from 1, and its share of the trials.

    Of triplets always the left one.
    """
    if not quality.places:
        return None
    place = 0 if kind == TRIPLET else max(range(kind.options), key=quality.places.__getitem__)
    return [place + 1, number(quality.places[place], 2)]


def number(value: float | None, digits: int) -> float | None:
    """A rounded number; None where it is missing or not finite."""
    return None if value is None or not isfinite(value) else round(value, digits)


def details(
    stored: StoredSession,
    columns: Columns,
    tests: tuple[Evidence, ...],
    usual_ms: Floats | None,
    floor_ms: float,
    with_names: bool,
    kind: Kind,
) -> dict[str, Any]:
    """One session in detail; `with_names` includes recruitment ID, comment and reasons."""
    participant = stored.participant
    return {
        "id": participant.id,
        "external": participant.external if with_names else None,
        "comment": participant.feedback if with_names else "",
        "stage": participant.stage,
        "done": participant.done,
        "trials": participant.trials,
        "excluded": bool(participant.excluded),
        "simulated": bool(participant.simulated),
        "arrived_at": participant.arrived_at,
        "seen_at": participant.seen_at,
        "finished_at": stored.finished_at,
        "usual_ms": None if usual_ms is None else [round(millis) for millis in usual_ms],
        "floor_ms": round(floor_ms),
        "tests": [
            {
                "flag": test.flag,
                "name": names(kind)[test.flag],
                "raised": flagged(test),
                "statement": statement(test, floor_ms),
            }
            for test in tests
        ],
        "answers": _answers(columns, kind),
        "decisions": [
            {
                "at": decision.at,
                "who": decision.who if with_names else "",
                "kind": decision.kind,
                "reason": str(decision.detail.get("reason", "")) if with_names else "",
            }
            for decision in stored.decisions
        ],
    }


def _answers(columns: Columns, kind: Kind) -> list[dict[str, Any]]:
    """The answers in order; `known` and `alike` are None where there is nothing to compare with.

    `shared` is how many choices are the same as before, `predicted` the probability of the option
    `likely`.
    """
    measured, odd = response_ms(columns), implausible(columns)
    first: dict[tuple[int, ...], int] = {}
    made = []
    for at in range(len(columns.seq)):
        anchor, options = int(columns.anchor[at]), columns.options[at].tolist()
        chosen = [options[place] for place in columns.picks[at].tolist() if place != NOTHING]
        shared, purpose = int(columns.shared[at]), PURPOSES[columns.purpose[at]]
        again = purpose == "repeat" and bool(chosen) and shared != NOTHING
        question = (anchor, *sorted(options))
        likely = int(columns.likely[at])
        made.append(
            {
                "trial": at + 1,
                "at": int(columns.received_at[at]),
                "ms": number(float(measured[at]), 0),
                "purpose": purpose,
                "anchor": None if anchor == NOTHING else anchor,
                "options": options,
                "chosen": chosen,
                "known": _outcome(int(columns.as_known[at]), chosen),
                "alike": shared >= kind.min_alike if again else None,
                "shared": shared if again else None,
                "repeats": first.get(question) if purpose == "repeat" else None,
                "likely": None if likely == NOTHING else options[likely],
                "predicted": number(float(columns.predicted[at]), 2),
                "implausible": bool(odd[at]),
                "blurred": bool(columns.blurred[at]),
            }
        )
        first.setdefault(question, at + 1)
    return made


def _outcome(value: int, chosen: list[int]) -> bool | None:
    return bool(value) if chosen and value != NOTHING else None


def quartiles(columns: Columns, participants: Any) -> Floats | None:
    """Quartiles of the response times of these participants; None where there are none."""
    times = response_ms(columns)[np.isin(columns.participant, participants)]
    times = times[~np.isnan(times)]
    return np.percentile(times, [25, 50, 75]) if len(times) else None
