"""What a database that was put together again lacks, and what must fit together in it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from server.store import collection
from server.store.hash_chain import records as chain
from server.store.hash_chain import verification as chain_verification
from server.store.hash_chain.records import Differing
from server.store.recovery.salvage import Merged, Recorded
from server.store.sqlite.connection import Connection
from server.store.tables import CHAIN, TABLES, key_of

WHO = "lore-active recover"
EVENT = "recover"
# Numbered from 1 without gaps, so that whatever is missing between two rows was there.
COUNTED = ("participants", "queries", "answers", "events", "prior_answers")
Ranges = list[list[int]]


@dataclass
class Missing:
    """What is known to have been stored and is not there.

    `rows` by table and number; `answers_of` says how many answers of a participant that is, and
    `nameless` are participants of whom only answers are left. `older` counts rows whose last change
    is lost, `unconfirmed` rows that were read from damaged pages and of which nothing tells whether
    they are as stored. `unknown` says why more than this may be missing.
    """

    rows: dict[str, Ranges] = field(default_factory=dict)
    answers_of: dict[int, int] = field(default_factory=dict)
    nameless: list[int] = field(default_factory=list)
    older: dict[str, int] = field(default_factory=dict)
    unconfirmed: int = 0
    unknown: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether all that was ever recorded is there, as it was."""
        lost = self.rows or self.answers_of or self.nameless or self.older
        return not (lost or self.unconfirmed or self.unknown)


def ranges(numbers: Iterable[int]) -> Ranges:
    """[first, last] of each stretch of numbers."""
    found: Ranges = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def numbers(found: Ranges) -> Iterator[int]:
    """What `ranges` was made of."""
    for first, last in found:
        yield from range(first, last + 1)


def missing(c: Connection, merged: list[Merged], unknown: list[str]) -> Missing:
    """Everything that the rows, the chain and what could not be used tell to be missing."""
    found, recorded = Missing(unknown=list(unknown)), Recorded(c)
    tops = _tops(c, merged)
    gone: dict[str, set[int]] = {
        table: set(range(1, tops[table] + 1)) - _there(c, table) for table in COUNTED
    }
    for table, number in recorded.rows():
        if table in TABLES:
            gone.setdefault(table, set()).add(number)
    known = lost_before(c)
    for table, missed in gone.items():
        missed -= _there(c, table)
        missed -= known.get(table, set())
        if missed:
            found.rows[table] = ranges(missed)
    if recorded.whole:
        for table, number in chain_verification.differing(c).changed:
            if table in TABLES and number not in gone.get(table, ()):
                found.older[table] = found.older.get(table, 0) + 1
    else:
        why = "there is no record of what was stored"
        if c.execute("SELECT 1 FROM chain").fetchone() is not None:
            why = "the record of what was stored is damaged, too"
        found.unknown.append(why)
        found.unconfirmed = sum(one.unconfirmed for one in merged)
    found.nameless = sorted({number for one in merged for number in one.nameless})
    found.answers_of = _answers_of(c, known.get("answers", set()))
    return found


def lost_before(c: Connection) -> dict[str, set[int]]:
    """What earlier recoveries have already said to be lost."""
    found: dict[str, set[int]] = {}
    for one in recoveries(c):
        for table, lost in one["missing"].items():
            found.setdefault(table, set()).update(numbers(lost))
    return found


def recoveries(c: Connection) -> list[dict[str, Any]]:
    """When the study was recovered (`at`), and what was missing then, by table."""
    rows = c.execute("SELECT at, detail FROM events WHERE kind = ? ORDER BY id", (EVENT,))
    return [{"at": row[0], "missing": json.loads(row[1]).get("missing", {})} for row in rows]


def _there(c: Connection, table: str) -> set[int]:
    return {row[0] for row in c.execute(f"SELECT {key_of(table)} FROM {table}")}


def _tops(c: Connection, merged: list[Merged]) -> dict[str, int]:
    """The highest number that each table is known to have had."""
    row = c.execute(
        "SELECT (SELECT max(up_to_seq) FROM steps), (SELECT max(up_to_query) FROM steps), "
        "(SELECT max(up_to_event) FROM steps), (SELECT max(query) FROM answers), "
        "(SELECT max(participant) FROM queries), (SELECT max(participant) FROM events), "
        # Every answer counts in its participant's row, and answers are numbered without gaps.
        "(SELECT sum(done + practised) FROM participants)"
    ).fetchone()
    seq, query, event, answered, asked, about, given = (value or 0 for value in row)
    tops = {
        "answers": max(seq, given),
        "queries": max(query, answered),
        "events": event,
        "participants": max(asked, about),
        "prior_answers": 0,
    }
    for table, top in tops.items():
        unusable = [number for one in merged for number in one.unusable.get(table, ())]
        tops[table] = max(top, *_there(c, table), *unusable, 0)
    return tops


def _answers_of(c: Connection, known: set[int]) -> dict[int, int]:
    rows = c.execute(
        "SELECT p.id, p.done + p.practised - (SELECT count(*) FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id) AS lacking FROM participants p "
        "WHERE lacking > 0 ORDER BY p.id"
    )
    # Of those that were lost earlier, nobody knows any more whose they were.
    return {} if known else {row[0]: row[1] for row in rows}


# ---- the chain ----------------------------------------------------------------------------------


def continue_chain(c: Connection, now: int) -> bool:
    """Let the chain go on with a period of its own; False if it had to begin again."""
    whole = Recorded(c).whole
    differing = Differing()
    if whole:
        differing = Differing(chain_verification.differing(c).changed)
    else:
        for table in CHAIN:
            c.execute(f"DELETE FROM {table}")
    chain.begin_period(c, now, chain.RECOVERY, differing)
    return whole


# ---- what must fit together ---------------------------------------------------------------------


@dataclass(frozen=True)
class Mended:
    """What was done so that the study can go on: steps of the journal that are kept or dropped."""

    steps: int
    steps_dropped: int
    state_lost: bool


def mend(
    c: Connection,
    now: int,
    items: list[tuple[int, str, str, str]],
    state: dict[str, int],
    practice: int,
    feedback: bool,
    lacking: Missing,
) -> Mended:
    """Make the study one that can go on: its journal whole, everybody where their answers are."""
    lost = _begin(c, items, state)
    _mend_participants(c, practice, feedback)
    _mend_imports(c)
    kept, dropped = cut_journal(c, "queries" in lacking.rows or bool(lacking.unknown))
    for number, excluded in collection.exclusions_without_event(c):
        kind = "exclude" if excluded else "restore"
        collection.add_event(c, kind, WHO, now, number, reason="the event was lost")
    return Mended(kept, dropped, lost)


def _begin(c: Connection, items: list[tuple[int, str, str, str]], state: dict[str, int]) -> bool:
    collection.add_items(c, items)
    if collection.state(c) is not None:
        return False
    c.execute(
        "INSERT INTO state VALUES (1, 'paused', :reason, :answers, :participants, :trials, :seed)",
        {**state, "reason": "Recovered without the settings that were changed on the monitor."},
    )
    return True


def _mend_participants(c: Connection, practice: int, feedback: bool) -> None:
    """Where somebody is follows from the answers that are there, if these are further."""
    c.execute(
        "UPDATE participants AS p SET "
        "done = max(done, coalesce((SELECT max(q.slot) + 1 FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id AND q.slot >= 0), 0)), "
        "practised = max(practised, coalesce((SELECT max(q.slot) + 1 + :practice FROM queries q "
        "JOIN answers a ON a.query = q.id WHERE q.participant = p.id AND q.slot < 0), 0)), "
        "arrived_at = CASE arrived_at WHEN 0 THEN coalesce((SELECT min(q.leased_at) FROM queries q "
        "WHERE q.participant = p.id), 0) ELSE arrived_at END, "
        "seen_at = max(seen_at, coalesce((SELECT max(a.received_at) FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id), 0))",
        {"practice": practice},
    )
    c.execute("UPDATE participants SET trials = done WHERE trials = 0")
    c.execute(
        "UPDATE participants SET stage = CASE WHEN done >= trials THEN :last "
        "WHEN done > 0 OR practised >= :practice THEN 'trials' ELSE 'practice' END, "
        "finished_at = CASE WHEN done >= trials AND :last = 'finished' THEN seen_at END "
        "WHERE stage IN ('consent', 'instructions', 'practice', 'trials') "
        "AND (done > 0 OR practised > 0) AND (stage <> 'trials' OR done >= trials)",
        {"last": "feedback" if feedback else "finished", "practice": practice},
    )


def _mend_imports(c: Connection) -> None:
    """A file of imported answers counts as what is left of it, or not at all."""
    c.execute(
        "UPDATE priors AS p SET answers = (SELECT count(*) FROM prior_answers a "
        "WHERE a.prior = p.id)"
    )
    c.execute(
        "UPDATE events SET kind = kind || '_lost' WHERE kind IN ('prior', 'prior_out') AND NOT "
        "EXISTS (SELECT 1 FROM prior_answers WHERE prior = json_extract(detail, '$.prior'))"
    )


def cut_journal(c: Connection, questions_lost: bool) -> tuple[int, int]:
    """Keep the steps of which everything is there that they saw and made; (kept, dropped).

    What the learner asked in a later step becomes a question of the web's own, so that the worker
    takes it in again, with its answer.
    """
    last = _last_whole_step(c, questions_lost)
    dropped = c.execute("SELECT count(*) FROM steps WHERE id > ?", (last,)).fetchone()[0]
    if dropped:
        seen = c.execute(
            "SELECT coalesce(max(up_to_query), 0) FROM steps WHERE id <= ?", (last,)
        ).fetchone()[0]
        c.execute("DELETE FROM snapshot WHERE step > ?", (last,))
        for table in ("models", "decisions"):
            c.execute(f"DELETE FROM {table} WHERE step > ?", (last,))
        c.execute("DELETE FROM steps WHERE id > ?", (last,))
        c.execute(
            "UPDATE queries SET learner = NULL, origin = 'fallback', step = NULL "
            "WHERE step > ? AND participant IS NOT NULL",
            (last,),
        )
        c.execute(
            "UPDATE queries SET learner = NULL, step = NULL, withdrawn = coalesce(withdrawn, ?) "
            "WHERE step > ?",
            (last, last),
        )
        c.execute("UPDATE queries SET learner = NULL WHERE id > ? AND step IS NULL", (seen,))
    return last, dropped


def _last_whole_step(c: Connection, questions_lost: bool) -> int:
    known = lost_before(c)

    def whole(table: str) -> int:
        """Up to which number nothing is missing, apart from what was when its steps were made."""
        there, number = _there(c, table) | known.get(table, set()), 0
        while number + 1 in there:
            number += 1
        return number

    queries, answers, events = (whole(table) for table in ("queries", "answers", "events"))
    models = {row[0]: row[1] for row in c.execute("SELECT step, version FROM models")}
    decided = {row[0] for row in c.execute("SELECT step FROM decisions")}
    asked: dict[int, int] = dict(
        c.execute(
            "SELECT step, max(id) FROM queries WHERE step IS NOT NULL GROUP BY step"
        ).fetchall()
    )
    last = version = 0
    rows: list[Any] = c.execute(
        "SELECT id, up_to_query, up_to_seq, up_to_event, version FROM steps ORDER BY id"
    ).fetchall()
    for step, up_to_query, up_to_seq, up_to_event, published in rows:
        fresh = published != version
        if (
            step != last + 1
            or up_to_query > queries
            or up_to_seq > answers
            or up_to_event > events
            # The question after the last one that is there may have been this step's, too.
            or asked.get(step, 0) > queries - questions_lost
            or (fresh and (models.get(step) != published or step not in decided))
        ):
            break
        last, version = step, published
    return last
