"""Makes the report of a study: reads its data, writes the texts, renders the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from server.report import stimuli
from server.report.contents import contents, data
from server.report.data import ReportData, report_data
from server.report.page import rendered
from server.store.database import Database
from server.study.config import LoadedStudy


@dataclass(frozen=True)
class Report:
    """The page, and the data and items that it was made from."""

    page: str
    data: ReportData
    items: stimuli.Shown


def report(
    database: Database,
    study: LoadedStudy,
    clock: Callable[[], int],
    pictures: Path | None = None,
    with_names: bool = False,
    simulated: bool = False,
) -> Report:
    """Make a report of the study as it is now.

    `with_names` includes recruitment IDs, comments and the names of experimenters; `simulated`
    lists simulated participants even where they are left out.
    """
    collected = report_data(database, study, clock, simulated)
    items = stimuli.shown(study, pictures)
    return Report(
        rendered(contents(collected, items, with_names), data(collected, items)), collected, items
    )
