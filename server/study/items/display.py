"""Items as pages show them: under names and with words that tell nothing about their files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from server.study.config import LoadedStudy
from server.study.items.file_types import MEDIA


def stimulus_name(study: LoadedStudy, item: int) -> str:
    """What an item is called in addresses and on pages."""
    one = study.items[item]
    key = f"{study.settings.seed}/{one.key}"
    suffix = "" if one.file is None else one.file.suffix.lower()
    return hashlib.sha256(key.encode()).hexdigest()[:20] + suffix


def items_by_name(study: LoadedStudy) -> dict[str, int]:
    """Item numbers by their names on pages."""
    return {stimulus_name(study, number): number for number in range(len(study.items))}


@dataclass(frozen=True)
class DisplayItem:
    """One item on a page; `alt` is empty where the study has no words for it."""

    kind: str
    name: str
    alt: str
    text: str


@dataclass(frozen=True)
class DisplayItems:
    """All items of a study on pages; made once, used by every request."""

    by_number: tuple[DisplayItem, ...]
    files: dict[str, tuple[Path, str]]
    """(file, media type) by name."""


def display_items(study: LoadedStudy) -> DisplayItems:
    """What participants see of a study's items."""
    shown, files = [], {}
    for number, item in enumerate(study.items):
        name = stimulus_name(study, number)
        shown.append(DisplayItem(item.kind, name, item.alt, item.text))
        if item.file is not None:
            files[name] = (item.file, MEDIA[item.file.suffix.lower()][1])
    return DisplayItems(tuple(shown), files)
