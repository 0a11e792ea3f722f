"""Exports to a folder: the files of each format and its data dictionary."""

from __future__ import annotations

from pathlib import Path

from server.exports import imported
from server.exports.registry import FORMATS
from server.exports.tables import (
    ExportOptions,
    Progress,
)
from server.store.database import Database
from server.study.config import LoadedStudy


def write(
    database: Database,
    study: LoadedStudy,
    out: Path,
    formats: list[str],
    choice: ExportOptions,
    progress: Progress = lambda answers: None,
) -> list[Path]:
    """Write these formats to `out`; return the files written."""
    written: list[Path] = []
    for name in formats:
        folder = out if len(formats) == 1 else out / name
        folder.mkdir(parents=True, exist_ok=True)
        written += FORMATS[name].write(database, study, folder, choice, progress)
        written += imported.write(database, study, folder, name)
    return written
