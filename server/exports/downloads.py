"""Files that the monitor offers for download, each streamed in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server.clock import now
from server.exports.answers import answers_csv
from server.exports.tables import embedding_csv, events_jsonl
from server.store.database import Database
from server.study.config import LoadedStudy

Writer = Callable[[Database, LoadedStudy], Iterator[str] | Iterator[bytes]]


@dataclass(frozen=True)
class Download:
    """A file to download: its name, type and description, and the function that writes it."""

    name: str
    mimetype: str
    description: str
    write: Writer


def log_jsonl(database: Database, study: LoadedStudy) -> Iterator[bytes]:
    """The complete log of the study, from which it can be replayed."""
    # Imported late: the log names numba's version, which the web process otherwise never loads.
    from server.exports.log import lines

    yield from lines(database, study)


def report_html(database: Database, study: LoadedStudy) -> Iterator[str]:
    """The report as one self-contained page, without names of participants."""
    # Imported late, as above: the report uses constants of modules that load numba.
    from server.report.report import report

    yield report(database, study, now).page


DOWNLOADS = {
    download.name: download
    for download in (
        Download("report.html", "text/html", "Shareable report (one file)", report_html),
        Download("answers.csv", "text/csv", "All answers, one per row", answers_csv),
        Download("embedding.csv", "text/csv", "Coordinates of the items", embedding_csv),
        Download("events.jsonl", "application/jsonl", "Activity log", events_jsonl),
        Download("log.jsonl", "application/jsonl", "Complete log, for replay", log_jsonl),
    )
}
