"""Items as addresses: names that tell participants nothing about what an item is called."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lore_active.study import LoadedStudy


def stimulus_name(study: LoadedStudy, item: int) -> str:
    """What an item is called in addresses and on pages."""
    one = study.items[item]
    key = f"{study.settings.seed}/{one.key}"
    suffix = "" if one.file is None else one.file.suffix.lower()
    return hashlib.sha256(key.encode()).hexdigest()[:20] + suffix


def stimulus_files(study: LoadedStudy) -> dict[str, Path]:
    """Files by their names in addresses."""
    return {
        stimulus_name(study, number): item.file
        for number, item in enumerate(study.items)
        if item.file is not None
    }


def items_by_name(study: LoadedStudy) -> dict[str, int]:
    """Item numbers by their names on pages."""
    return {stimulus_name(study, number): number for number in range(len(study.items))}
