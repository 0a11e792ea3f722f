"""Tables of a study as CSV or JSON Lines, generated in pieces for a page or a command."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from lore_active.data.formats import dimension_names, safe
from server.monitor.map import embedding_of
from server.status.counting import simulated_left_out
from server.store import models, summaries
from server.store.archive import NAMING_EVENTS
from server.store.database import Database
from server.store.sqlite.former_names import model_summary
from server.study.config import LoadedStudy

PARTICIPANTS = (
    *("participant", "excluded", "simulated", "stage", "trials", "done", "arrived_at_utc"),
    *("finished_at_utc", "external", "entry", "user_agent", "feedback"),
)
MODELS = (
    *("version", "answers", "audit", "rank", "settled", "lambda", "prequential_accuracy"),
    *("accuracy_low", "accuracy_high", "noise_ceiling", "stopping_rule", "ruled_out_share"),
    *("found_share", "ranks_from", "ranks_to"),
)
ITEMS = ("item", "kind", "label", "alt", "text", "file")
Progress = Callable[[int], None]


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export: whether to omit excluded participants, and identifying columns.

    Simulated participants are left out if real ones have answered, unless `simulated`. Psych-DS is
    de-identified unless `identified`; `comments` keeps participants' comments.
    """

    without_excluded: bool = False
    pseudonyms: bool = False
    simulated: bool = False
    identified: bool = False
    comments: bool = False

    def keeps(self, excluded: bool, simulated: bool, left_out: bool) -> bool:
        """Return whether to keep a participant; `left_out`: simulated ones do not count."""
        if simulated and left_out and not self.simulated:
            return False
        return not (excluded and self.without_excluded)


ALL = ExportOptions()


def put(path: Path, pieces: Iterator[str]) -> Path:
    """Write a file in pieces."""
    with open(path, "w", encoding="utf-8", newline="", opener=private) as file:
        for piece in pieces:
            file.write(piece)
    return path


def private(path: str, flags: int) -> int:
    """Create a file that only its owner can read, since it may identify participants."""
    return os.open(path, flags, 0o600)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Format rows as CSV, with formulas for spreadsheets escaped."""
    out = io.StringIO()
    # With both characters in the line end, a cell with either is quoted.
    csv.writer(out, lineterminator="\r\n").writerows(
        [safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return out.getvalue()


def utc(ms: int | None) -> str:
    """Format a time as ISO 8601; empty for None."""
    if ms is None:
        return ""
    minute, rest = divmod(ms, 60_000)
    return f"{_minute(minute)}:{rest // 1000:02d}.{rest % 1000:03d}+00:00"


@lru_cache(maxsize=1024)
def _minute(minute: int) -> str:
    """Format the minute, cached since consecutive times share it."""
    return datetime.fromtimestamp(60 * minute, UTC).isoformat(timespec="minutes")[:-6]


def embedding_csv(database: Database, study: LoadedStudy) -> Iterator[str]:
    """Yield the newest model's coordinates on principal axes, strongest first, as CSV."""
    z = embedding_of(database.read(models.latest_model), len(study.items))
    yield csv_text([["item", *dimension_names(z.shape[1])]])
    yield csv_text([item.key, *map(float, row)] for item, row in zip(study.items, z, strict=True))


def models_csv(database: Database) -> Iterator[str]:
    """Yield every published model as CSV: its rank, its accuracy and what was ruled out."""
    yield csv_text([MODELS])
    for row in database.read(lambda c: list(models.for_export(c))):
        *numbers, summary = row
        version, answers, audit, rank, lam, settled = numbers
        known = model_summary(summary)
        share = known["prequential"]
        interval = [share[name] if share["count"] else "" for name in ("value", "low", "high")]
        ruled = known.get("sensitivity") or {}
        cells = (
            *(version, answers, audit, rank, settled, lam, *interval, known["ceiling"]),
            *(known.get("rule"), ruled.get("ruled_out"), ruled.get("found")),
            *ruled.get("ranks", (None, None)),
        )
        yield csv_text([["" if cell is None else cell for cell in cells]])


def participants_csv(database: Database, choice: ExportOptions = ALL) -> Iterator[str]:
    """Yield every participant as CSV, one per row."""
    yield csv_text([PARTICIPANTS])
    left_out = database.read(simulated_left_out)
    for row in database.read(summaries.participants_for_export):
        cells = dict(zip(PARTICIPANTS, row, strict=True))
        if not choice.keeps(bool(cells["excluded"]), bool(cells["simulated"]), left_out):
            continue
        if choice.pseudonyms:
            cells.update(external="", entry="{}", user_agent="", feedback="")
        cells["arrived_at_utc"] = utc(cells["arrived_at_utc"])
        cells["finished_at_utc"] = utc(cells["finished_at_utc"])
        yield csv_text([cells.values()])


def items_csv(study: LoadedStudy) -> Iterator[str]:
    """Yield every item as CSV, one per row."""
    yield csv_text([ITEMS])
    yield csv_text(
        (item.key, item.kind, item.label, item.alt, item.text, item.file.name if item.file else "")
        for item in study.items
    )


def events_jsonl(database: Database, study: LoadedStudy, pseudonyms: bool = False) -> Iterator[str]:
    """Yield the activity log, one JSON object per line."""
    for event in database.read(lambda c: list(summaries.all_events(c))):
        detail = {} if pseudonyms and event.kind in NAMING_EVENTS else event.detail
        line = {
            "event": event.id,
            "at_utc": utc(event.at),
            "who": event.who,
            "kind": event.kind,
            "participant": event.participant,
            **{f"detail_{name}": value for name, value in detail.items()},
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"
