"""Items as displayed on pages, with names that reveal nothing about their files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from server.study.config import LoadedStudy
from server.study.items.file_types import MEDIA


def stimulus_name(study: LoadedStudy, item: int) -> str:
    """Return the name of an item in URLs and on pages."""
    stimulus = study.items[item]
    key = f"{study.settings.seed}/{stimulus.key}"
    suffix = "" if stimulus.file is None else stimulus.file.suffix.lower()
    return hashlib.sha256(key.encode()).hexdigest()[:20] + suffix


def items_by_name(study: LoadedStudy) -> dict[str, int]:
    """Map names on pages to item numbers."""
    return {stimulus_name(study, number): number for number in range(len(study.items))}


@dataclass(frozen=True)
class DisplayItem:
    """An item on a page; `alt` is empty if the study has no text alternative."""

    kind: str
    name: str
    alt: str
    text: str


@dataclass(frozen=True)
class DisplayItems:
    """All items of a study on pages; built once, used by every request."""

    by_number: tuple[DisplayItem, ...]
    files: dict[str, tuple[Path, str]]
    """(file, media type) by name."""


def display_items(study: LoadedStudy) -> DisplayItems:
    """Build the items as participants see them."""
    shown, files = [], {}
    for number, item in enumerate(study.items):
        name = stimulus_name(study, number)
        shown.append(DisplayItem(item.kind, name, item.alt, item.text))
        if item.file is not None:
            files[name] = (item.file, MEDIA[item.file.suffix.lower()][1])
    return DisplayItems(tuple(shown), files)
