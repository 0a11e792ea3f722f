"""The items in a report: small images are embedded in the page, others are shown by name."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.study.config import Item, LoadedStudy
from server.study.items.file_types import MEDIA

# Of all images together; encoded in the page they take a third more.
MAX_BYTES = 1_000_000
MAX_NAME = 60


@dataclass(frozen=True)
class Shown:
    """The items as the page has them, and a sentence about images left out, if any were."""

    items: list[dict[str, Any]]
    pictures: int
    left_out: str


def name_of(item: Item) -> str:
    """The name of an item; texts are their own names."""
    name = item.text if item.kind == "text" else item.label
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def shown(study: LoadedStudy, folder: Path | None = None) -> Shown:
    """All items; `folder` may contain small versions of the images, under the same names."""
    wanted = [item for item in study.items if item.kind == "image"]
    files = {item.key: file for item in wanted if (file := _file(item, folder)) is not None}
    size = sum(file.stat().st_size for file in files.values())
    left_out = ""
    if len(files) < len(wanted):
        missing = len(wanted) - len(files)
        left_out = (
            f"Images not available when the report was made: {missing} of {len(wanted)} (a log has "
            "none). These items are shown by name; --pictures gives a folder with images."
        )
    if size > MAX_BYTES:
        left_out = (
            f"The images take {size / 1e6:.1f} MB in total, more than the "
            f"{MAX_BYTES / 1e6:.0f} MB that a report can include, so items are shown by name. "
            "--pictures gives a folder with smaller versions."
        )
        files = {}
    items = [
        {
            "key": item.key,
            "kind": item.kind,
            "label": item.label,
            "text": item.text[:200],
            "address": _address(files[item.key]) if item.key in files else None,
        }
        for item in study.items
    ]
    return Shown(items, len(files), left_out)


def _file(item: Item, folder: Path | None) -> Path | None:
    return next((candidate for candidate in _candidates(item, folder) if candidate.is_file()), None)


def _candidates(item: Item, folder: Path | None) -> Iterator[Path]:
    assert item.file is not None
    if folder is not None:
        endings = [ending for ending, media in MEDIA.items() if media[0] == "image"]
        for ending in (item.file.suffix, *endings):
            yield (folder / item.file.name).with_suffix(ending)
    yield item.file


def _address(file: Path) -> str:
    kind = MEDIA[file.suffix.lower()][1]
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"
