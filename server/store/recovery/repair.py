"""What a recovered database lacks, and the repairs that make it consistent."""

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
from server.store.sqlite.former_names import IMPORT_NUMBER, event_kinds
from server.store.sqlite.tables import CHAIN, TABLES, key_of

WHO = "lore-active recover"
EVENT = "recover"
# Numbered from 1 without gaps, so that every gap is a lost row.
COUNTED = ("participants", "queries", "answers", "events", "imported_answers")
Ranges = list[list[int]]


@dataclass
class Missing:
    """What is known to have been stored and is missing.

    `rows` by table and number; `answers_of` counts missing answers by participant;
    `identity_lost` are participants of whom only answers remain. `older` counts rows whose last
    change is lost, `unconfirmed` those read from damaged pages without a digest to confirm them.
    `unknown` says why more may be missing.
    """

    rows: dict[str, Ranges] = field(default_factory=dict)
    answers_of: dict[int, int] = field(default_factory=dict)
    identity_lost: list[int] = field(default_factory=list)
    older: dict[str, int] = field(default_factory=dict)
    unconfirmed: int = 0
    unknown: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether everything ever recorded is there, unchanged."""
        lost = self.rows or self.answers_of or self.identity_lost or self.older
        return not (lost or self.unconfirmed or self.unknown)


def ranges(numbers: Iterable[int]) -> Ranges:
    """Return [first, last] of each run of consecutive numbers."""
    runs: Ranges = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def numbers(runs: Ranges) -> Iterator[int]:
    """Yield the numbers of such ranges."""
    for first, last in runs:
        yield from range(first, last + 1)


def missing(c: Connection, merged: list[Merged], unknown: list[str]) -> Missing:
    """Determine what is missing, from the rows, the chain and unusable rows."""
    result, recorded = Missing(unknown=list(unknown)), Recorded(c)
    tops = _tops(c, merged)
    gone: dict[str, set[int]] = {
        table: set(range(1, tops[table] + 1)) - _present(c, table) for table in COUNTED
    }
    for table, number in recorded.rows():
        if table in TABLES:
            gone.setdefault(table, set()).add(number)
    known = lost_before(c)
    for table, missed in gone.items():
        missed -= _present(c, table)
        missed -= known.get(table, set())
        if missed:
            result.rows[table] = ranges(missed)
    if recorded.whole:
        for table, number in chain_verification.differing(c).changed:
            if table in TABLES and number not in gone.get(table, ()):
                result.older[table] = result.older.get(table, 0) + 1
    else:
        why = "there is no record of what was stored"
        if c.execute("SELECT 1 FROM chain").fetchone() is not None:
            why = "the record of what was stored is also damaged"
        result.unknown.append(why)
        result.unconfirmed = sum(source.unconfirmed for source in merged)
    result.identity_lost = sorted({number for source in merged for number in source.identity_lost})
    result.answers_of = _answers_of(c, known.get("answers", set()))
    return result


def lost_before(c: Connection) -> dict[str, set[int]]:
    """Return what earlier recoveries reported as lost."""
    result: dict[str, set[int]] = {}
    for recovery in recoveries(c):
        for table, lost in recovery["missing"].items():
            result.setdefault(table, set()).update(numbers(lost))
    return result


def recoveries(c: Connection) -> list[dict[str, Any]]:
    """List when the study was recovered (`at`), and what was missing then, by table."""
    rows = c.execute("SELECT at, detail FROM events WHERE kind = ? ORDER BY id", (EVENT,))
    return [{"at": row[0], "missing": json.loads(row[1]).get("missing", {})} for row in rows]


def _present(c: Connection, table: str) -> set[int]:
    return {row[0] for row in c.execute(f"SELECT {key_of(table)} FROM {table}")}


def _tops(c: Connection, merged: list[Merged]) -> dict[str, int]:
    """Return the highest number that each table is known to have had."""
    row = c.execute(
        "SELECT (SELECT max(up_to_seq) FROM steps), (SELECT max(up_to_query) FROM steps), "
        "(SELECT max(up_to_event) FROM steps), (SELECT max(query) FROM answers), "
        "(SELECT max(participant) FROM queries), (SELECT max(participant) FROM events), "
        # Each participant's row counts their answers, and answers are numbered without gaps.
        "(SELECT sum(done + practice_done) FROM participants)"
    ).fetchone()
    seq, question, event, answered, asked, about, given = (value or 0 for value in row)
    tops = {
        "answers": max(seq, given),
        "queries": max(question, answered),
        "events": event,
        "participants": max(asked, about),
        "imported_answers": 0,
    }
    for table, top in tops.items():
        unusable = [number for source in merged for number in source.unusable.get(table, ())]
        tops[table] = max(top, *_present(c, table), *unusable, 0)
    return tops


def _answers_of(c: Connection, known: set[int]) -> dict[int, int]:
    rows = c.execute(
        "SELECT p.id, p.done + p.practice_done - (SELECT count(*) FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id) AS lacking FROM participants p "
        "WHERE lacking > 0 ORDER BY p.id"
    )
    # For answers lost earlier, the participants are no longer known.
    return {} if known else {row[0]: row[1] for row in rows}


# ---- the chain ----------------------------------------------------------------------------------


def continue_chain(c: Connection, now: int) -> bool:
    """Continue the chain with a new period; return False if it had to start over."""
    whole = Recorded(c).whole
    differing = Differing()
    if whole:
        differing = Differing(chain_verification.differing(c).changed)
    else:
        for table in CHAIN:
            c.execute(f"DELETE FROM {table}")
    chain.begin_period(c, now, chain.RECOVERY, differing)
    return whole


# ---- consistency --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mended:
    """Repairs made: steps of the journal kept and dropped, and whether the state was lost."""

    steps: int
    steps_dropped: int
    state_lost: bool


def mend(
    c: Connection,
    now: int,
    items: list[tuple[int, str, str, str]],
    state: dict[str, int | str],
    practice: int,
    feedback: bool,
    lacking: Missing,
) -> Mended:
    """Make the study consistent: a complete journal, and progress that matches the answers."""
    lost = _begin(c, items, state)
    _mend_participants(c, practice, feedback)
    _mend_imports(c)
    kept, dropped = cut_journal(c, "queries" in lacking.rows or bool(lacking.unknown))
    for number, excluded in collection.exclusions_without_event(c):
        kind = "exclude" if excluded else "restore"
        collection.add_event(c, kind, WHO, now, number, reason="the event was lost")
    return Mended(kept, dropped, lost)


def _begin(
    c: Connection, items: list[tuple[int, str, str, str]], state: dict[str, int | str]
) -> bool:
    collection.add_items(c, items)
    if collection.state(c) is not None:
        return False
    c.execute(
        "INSERT INTO state "
        "VALUES (1, 'paused', :reason, :answers, :participants, :trials, :seed, :kind)",
        {**state, "reason": "Recovered without the settings changed on the monitor."},
    )
    return True


def _mend_participants(c: Connection, practice: int, feedback: bool) -> None:
    """Advance participants' progress to match their answers."""
    c.execute(
        "UPDATE participants AS p SET "
        "done = max(done, coalesce((SELECT max(q.slot) + 1 FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id AND q.slot >= 0), 0)), "
        "practice_done = max(practice_done, coalesce((SELECT max(q.slot) + 1 + :practice "
        "FROM queries q JOIN answers a ON a.query = q.id WHERE q.participant = p.id "
        "AND q.slot < 0), 0)), "
        "arrived_at = CASE arrived_at WHEN 0 THEN coalesce((SELECT min(q.leased_at) FROM queries q "
        "WHERE q.participant = p.id), 0) ELSE arrived_at END, "
        "seen_at = max(seen_at, coalesce((SELECT max(a.received_at) FROM queries q JOIN answers a "
        "ON a.query = q.id WHERE q.participant = p.id), 0))",
        {"practice": practice},
    )
    c.execute("UPDATE participants SET trials = done WHERE trials = 0")
    c.execute(
        "UPDATE participants SET stage = CASE WHEN done >= trials THEN :last "
        "WHEN done > 0 OR practice_done >= :practice THEN 'trials' ELSE 'practice' END, "
        "finished_at = CASE WHEN done >= trials AND :last = 'finished' THEN seen_at END "
        "WHERE stage IN ('consent', 'instructions', 'practice', 'trials') "
        "AND (done > 0 OR practice_done > 0) AND (stage <> 'trials' OR done >= trials)",
        {"last": "feedback" if feedback else "finished", "practice": practice},
    )


def _mend_imports(c: Connection) -> None:
    """Let imported files count with their remaining answers, or not at all."""
    c.execute(
        # The rows of one trial are one answer.
        "UPDATE imported_files AS f SET answers = (SELECT count(DISTINCT coalesce(a.trial, -a.id)) "
        "FROM imported_answers a WHERE a.file = f.id)"
    )
    c.execute(
        "UPDATE events SET kind = kind || '_lost' "
        f"WHERE kind IN ({event_kinds('import', 'import_removed')}) AND NOT "
        f"EXISTS (SELECT 1 FROM imported_answers WHERE file = {IMPORT_NUMBER})"
    )


def cut_journal(c: Connection, questions_lost: bool) -> tuple[int, int]:
    """Keep only steps whose inputs and results are complete; return (kept, dropped).

    Questions that the learner selected in a later step become questions of the web server, so that
    the worker processes them again, with their answers.
    """
    last = _last_whole_step(c, questions_lost)
    dropped = c.execute("SELECT count(*) FROM steps WHERE id > ?", (last,)).fetchone()[0]
    if dropped:
        c.execute("DELETE FROM snapshot WHERE step > ?", (last,))
        for table in ("models", "decisions"):
            c.execute(f"DELETE FROM {table} WHERE step > ?", (last,))
        c.execute("DELETE FROM steps WHERE id > ?", (last,))
        c.execute(
            "UPDATE queries SET origin = 'fallback', step = NULL "
            "WHERE step > ? AND participant IS NOT NULL",
            (last,),
        )
        c.execute(
            "UPDATE queries SET step = NULL, withdrawn = coalesce(withdrawn, ?) WHERE step > ?",
            (last, last),
        )
    return last, dropped


def _last_whole_step(c: Connection, questions_lost: bool) -> int:
    known = lost_before(c)

    def whole(table: str) -> int:
        """Return up to which number nothing is missing, except for earlier losses."""
        there, number = _present(c, table) | known.get(table, set()), 0
        while number + 1 in there:
            number += 1
        return number

    questions, answers, events = (whole(table) for table in ("queries", "answers", "events"))
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
    for step, up_to_question, up_to_seq, up_to_event, published in rows:
        fresh = published != version
        if (
            step != last + 1
            or up_to_question > questions
            or up_to_seq > answers
            or up_to_event > events
            # The first missing question may also have belonged to this step.
            or asked.get(step, 0) > questions - questions_lost
            or (fresh and (models.get(step) != published or step not in decided))
        ):
            break
        last, version = step, published
    return last
