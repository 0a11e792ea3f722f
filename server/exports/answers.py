"""Answers in exports: a row for each trial, and one for each of the comparisons it consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from lore_active.questions.kinds import TRIPLET, Kind
from server.exports.tables import ALL, ExportOptions, Progress, csv_text, utc
from server.status.counting import Fates
from server.store import summaries
from server.store.database import Database
from server.store.sqlite.item_lists import items_in
from server.study.config import LoadedStudy

_ABOUT = ("seq", "participant", "excluded", "simulated", "slot", "purpose", "origin")
_MORE = (
    *("known_answer", "repeats_question", "rt_ms", "late", "received_at_utc", "asked_at_utc"),
    *("model_version", "question", "background", "fitted"),
)
# The columns of answers to triplets.
ANSWERS = (*_ABOUT, "anchor", "left", "right", "side", "chosen", *_MORE)
COMPARISONS = (
    *("trial", "participant", "excluded", "simulated", "purpose", "anchor", "nearer", "farther"),
    "fitted",
)
# Questions without any comparison that a model may use.
KNOWN = ("practice", "catch")


def answer_columns(kind: Kind) -> tuple[str, ...]:
    """Columns of a file of answers to questions of this kind."""
    if kind == TRIPLET:
        return ANSWERS
    return (
        *(*_ABOUT, "kind", "anchor"),
        *(f"option_{place}" for place in range(1, kind.options + 1)),
        "outcome",
        *(f"chosen_{place}" for place in range(1, kind.pick + 1)),
        *_MORE,
    )


def answer_records(
    database: Database,
    study: LoadedStudy,
    choice: ExportOptions = ALL,
    progress: Progress = lambda answers: None,
) -> Iterator[list[dict[str, Any]]]:
    """Yield answers as dictionaries, a few thousand at once.

    `options` are keys of items in the order of display, `chosen` in the order of choice; times are
    in milliseconds.
    """
    last = count = 0
    fates = database.read(Fates)
    keys = database.read(summaries.item_keys)
    # Answers are never changed, so that parts read one after another are consistent.
    while rows := database.read(partial(summaries.answers_for_export, seq=last)):
        last = rows[-1][0]
        count += len(rows)
        progress(count)
        records = (_record(row, keys, study.kind, fates) for row in rows)
        yield [
            record
            for record in records
            if record is not None
            and choice.keeps(record["excluded"], record["simulated"], fates.simulated_left_out)
        ]


def _record(
    row: tuple[Any, ...], keys: Mapping[int, str], kind: Kind, fates: Fates
) -> dict[str, Any] | None:
    """An answer; None if it refers to items that do not exist, as in a damaged file."""
    *about, anchor, options, outcome, chosen, known = row[:12]
    shown, picked, right = map(items_in, (options, chosen, known))
    if len(shown) != kind.options or not keys.keys() >= {*shown, *picked}:
        return None
    if kind.has_anchor and anchor not in keys:
        return None
    record = dict(zip(_ABOUT, about, strict=True))
    marks = bool(record["excluded"]), bool(record["simulated"])
    record |= {
        "anchor": keys.get(anchor),
        "options": [keys[item] for item in shown],
        "outcome": outcome,
        "chosen": [keys[item] for item in picked],
        "known_answer": keys.get(right[0]) if right else None,
        **dict(zip(_MORE[1:-1], row[12:], strict=True)),
    }
    counts = (record["seq"], record["purpose"], outcome, *marks)
    return record | {"counts": fates.counted(*counts), "fitted": int(fates.fitted(*counts))}


def comparisons(record: Mapping[str, Any], kind: Kind) -> list[tuple[str, str, str]]:
    """Comparisons (anchor, nearer, farther) of an answer with a choice, as keys of items.

    Of a catch trial, those about the item that was to be chosen.
    """
    options: list[str] = record["options"]
    # By place: in a catch trial, an item may be shown twice.
    free = list(range(len(options)))
    chosen = [free.pop(_place(free, options, key)) for key in record["chosen"]]
    anchor = len(options) if kind.has_anchor else None
    items = [*options, record["anchor"]]
    known = record["known_answer"]
    return [
        (items[item], items[near], items[far])
        for item, near, far in kind.comparisons(anchor, range(len(options)), chosen)
        if known is None or known in (items[near], items[far])
    ]


def _place(free: list[int], options: list[str], key: str) -> int:
    return next(at for at, place in enumerate(free) if options[place] == key)


def answers_csv(
    database: Database,
    study: LoadedStudy,
    choice: ExportOptions = ALL,
    progress: Progress = lambda answers: None,
) -> Iterator[str]:
    """Yield every answer as CSV, including practice and excluded participants unless omitted."""
    columns = answer_columns(study.kind)
    yield csv_text([columns])
    for records in answer_records(database, study, choice, progress):
        yield csv_text(answer_cells(record, study.kind, columns) for record in records)


def answer_cells(record: Mapping[str, Any], kind: Kind, columns: tuple[str, ...]) -> Iterator[Any]:
    """The cells of an answer in these columns."""
    cells = {**record, "kind": kind.label}
    cells |= {name: utc(record[name]) for name in ("received_at_utc", "asked_at_utc")}
    options, chosen = record["options"], record["chosen"]
    if kind == TRIPLET:
        cells |= {"left": options[0], "right": options[1], "chosen": chosen[0] if chosen else None}
        side = "left" if chosen and chosen[0] == options[0] else "right"
        cells["side"] = side if record["outcome"] == "chosen" else record["outcome"]
    else:
        cells |= {f"option_{place}": key for place, key in enumerate(options, 1)}
        cells |= {f"chosen_{place}": None for place in range(1, kind.pick + 1)}
        cells |= {f"chosen_{place}": key for place, key in enumerate(chosen, 1)}
    return (cells[name] for name in columns)


def comparisons_csv(
    database: Database, study: LoadedStudy, choice: ExportOptions = ALL
) -> Iterator[str]:
    """Yield every comparison as CSV, without practice and catch trials."""
    yield csv_text([COMPARISONS])
    for records in answer_records(database, study, choice):
        yield csv_text(
            (
                *(record["seq"], record["participant"], record["excluded"], record["simulated"]),
                *(record["purpose"], *three, record["fitted"]),
            )
            for record in records
            if record["purpose"] not in KNOWN and record["chosen"]
            for three in comparisons(record, study.kind)
        )
