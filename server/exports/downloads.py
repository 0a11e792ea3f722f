"""Single files that the monitor offers for download, each written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server.clock import now
from server.exports.tables import answers_csv, embedding_csv, events_jsonl
from server.store.database import Database
from server.study.config import LoadedStudy

Writer = Callable[[Database, LoadedStudy], Iterator[str] | Iterator[bytes]]


@dataclass(frozen=True)
class Download:
    """A file that can be made: its name after the study's, its type, and how."""

    name: str
    mimetype: str
    description: str
    write: Writer


def log_jsonl(database: Database, study: LoadedStudy) -> Iterator[bytes]:
    """Everything that happened, line by line, from which the study can be replayed."""
    # Its first line names the compiler's version, which the web process does without until now.
    from server.exports.log import lines

    yield from lines(database, study)


def report_html(database: Database, study: LoadedStudy) -> Iterator[str]:
    """The study as one page that needs nothing else; no participant is named in it."""
    # It reads the method's constants, and with them the compiler, as above.
    from server.report.report import report

    yield report(database, study, now).page


DOWNLOADS = {
    one.name: one
    for one in (
        Download("report.html", "text/html", "Shareable report (one file)", report_html),
        Download("answers.csv", "text/csv", "All answers, one per row", answers_csv),
        Download("embedding.csv", "text/csv", "Coordinates of the items", embedding_csv),
        Download("events.jsonl", "application/jsonl", "Activity log", events_jsonl),
        Download("log.jsonl", "application/jsonl", "Complete log, for replay", log_jsonl),
    )
}
