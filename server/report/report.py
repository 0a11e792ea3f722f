"""From a study to its report: read, put into words, drawn up as a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from server.report import stimuli
from server.report.contents import contents, data
from server.report.data import ReportData, gathered
from server.report.page import rendered
from server.store.database import Database
from server.study.config import LoadedStudy


@dataclass(frozen=True)
class Report:
    """The page, and what it was made of."""

    page: str
    found: ReportData
    items: stimuli.Shown


def report(
    database: Database,
    study: LoadedStudy,
    clock: Callable[[], int],
    pictures: Path | None = None,
    with_names: bool = False,
    simulated: bool = False,
) -> Report:
    """A report of the study as it is now; `with_names` tells who participants are.

    `simulated` lists simulated participants even where they do not count.
    """
    found = gathered(database, study, clock, simulated)
    items = stimuli.shown(study, pictures)
    return Report(rendered(contents(found, items, with_names), data(found, items)), found, items)
