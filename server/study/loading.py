"""A study on disk: one folder in, a study that checked or everything that is wrong with it out."""

from __future__ import annotations

import re
from pathlib import Path

from server.study import parsing, validation
from server.study.config import Catch, Item, LoadedStudy
from server.study.items import positions
from server.study.items.files import find, read_text
from server.study.items.lists import read_catches
from server.study.items.stimuli import read_items
from server.study.parsing import FILE, ParsedSettings
from server.study.problems import InvalidStudy, Problem, shown

__all__ = ["InvalidStudy", "Problem", "check", "load"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
MAX_SETTINGS_BYTES = 1_000_000


def load(folder: Path, begun: bool = False) -> LoadedStudy:
    """The study in `folder`; `InvalidStudy` with all its problems if there are any.

    The keys of a study that has `begun` cannot be changed any more, so those that look the same
    do not keep anybody from its data.
    """
    study, problems = _examine(folder, begun)
    if study is None:
        raise InvalidStudy(problems)
    return study


def check(folder: Path) -> list[Problem]:
    """Everything that keeps the study in `folder` from running; empty if it can run."""
    return _examine(folder)[1]


def _examine(folder: Path, begun: bool = False) -> tuple[LoadedStudy | None, list[Problem]]:
    problems: list[Problem] = []
    try:
        home = Path(folder).resolve(strict=True)
        if not home.is_dir():
            problems.append(Problem(str(folder), "", "a file", "a study must be a folder"))
            return None, problems
    except (OSError, RuntimeError, ValueError):
        rule = "must be a folder that holds a study.toml and its stimuli"
        return None, [Problem(str(folder), "", "missing", rule)]
    if not NAME.fullmatch(home.name):
        rule = (
            "must be up to 64 letters (a to z), digits, - and _, and begin with a letter or "
            "digit: it becomes part of the study's address"
        )
        problems.append(Problem(str(folder), "its name", shown(home.name), rule))
    found = _settings(home, problems)
    if found is None:
        return None, problems
    items, catches = _stimuli(home, found, begun, problems)
    if problems:
        return None, problems
    return LoadedStudy(home, home.name, found.study, tuple(items), catches), problems


def _settings(home: Path, problems: list[Problem]) -> ParsedSettings | None:
    path = find(home, FILE, str(home), FILE)
    if isinstance(path, Problem):
        if not (home / FILE).exists():
            rule = "every study must have one; `lore-active new` writes a first one"
            path = Problem(str(home), FILE, "missing", rule)
        problems.append(path)
        return None
    text = read_text(path, FILE, MAX_SETTINGS_BYTES)
    if isinstance(text, Problem):
        problems.append(text)
        return None
    return parsing.read(text, problems)


def _stimuli(
    home: Path, found: ParsedSettings, begun: bool, problems: list[Problem]
) -> tuple[list[Item], tuple[Catch, ...]]:
    """Items and catches, and the checks of settings that depend on them."""
    study = found.study
    if not found.sound("stimuli.folder", "stimuli.list", "stimuli.max_megabytes"):
        problems.extend(validation.contradictions(found))
        return [], ()
    before = len(problems)
    items, listed = read_items(home, study.stimuli, problems, begun)
    all_sound = len(problems) == before
    # An item that is broken would be reported again as unknown in every line that names it.
    catches: tuple[Catch, ...] = ()
    if all_sound and found.sound("stimuli.catches"):
        catches = read_catches(home, study.stimuli.catches, listed, items, problems)
    problems.extend(validation.contradictions(found))
    if study.bots.positions and found.sound("bots.positions"):
        path = find(home, study.bots.positions, FILE, "bots.positions")
        if isinstance(path, Problem):
            problems.append(path)
        elif all_sound:
            positions.examine(path, study.bots.positions, items, problems)
    return items, catches
