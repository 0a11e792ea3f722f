"""Loading a study folder: a valid study, or everything that is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from lore_active.questions.kinds import Kind
from server.study import parsing, validation
from server.study.config import Catch, Item, LoadedStudy, Study, kind_of
from server.study.items import positions
from server.study.items.files import find, read_text
from server.study.items.lists import read_catches
from server.study.items.stimuli import read_items
from server.study.kinds import default_question, item_problems, kind_problems
from server.study.parsing import FILE, ParsedSettings
from server.study.problems import InvalidStudy, Problem, shown

__all__ = ["InvalidStudy", "Problem", "check", "load"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
MAX_SETTINGS_BYTES = 1_000_000


def load(folder: Path, begun: bool = False) -> LoadedStudy:
    """Load the study in `folder`; raise `InvalidStudy` with all problems if there are any.

    Keys of a study that has `begun` can no longer be changed, so keys that look alike are not
    reported, and its data remain accessible.
    """
    study, problems = _examine(folder, begun)
    if study is None:
        raise InvalidStudy(problems)
    return study


def check(folder: Path) -> list[Problem]:
    """List everything that keeps the study in `folder` from running; empty if it is valid."""
    return _examine(folder)[1]


def _examine(folder: Path, begun: bool = False) -> tuple[LoadedStudy | None, list[Problem]]:
    problems: list[Problem] = []
    try:
        home = Path(folder).resolve(strict=True)
        if not home.is_dir():
            problems.append(Problem(str(folder), "", "a file", "a study must be a folder"))
            return None, problems
    except (OSError, RuntimeError, ValueError):
        rule = "must be a folder that contains a study.toml and its stimuli"
        return None, [Problem(str(folder), "", "missing", rule)]
    if not NAME.fullmatch(home.name):
        rule = (
            "must be up to 64 letters (a to z), digits, - and _, and start with a letter or "
            "digit: it becomes part of the study's URL"
        )
        problems.append(Problem(str(folder), "its name", shown(home.name), rule))
    settings = _settings(home, problems)
    if settings is None:
        return None, problems
    items, catches = _stimuli(home, settings, begun, problems)
    if problems:
        return None, problems
    study = LoadedStudy(
        home, home.name, _with_question(settings.study), tuple(items), catches, settings.given
    )
    return study, problems


def _with_question(settings: Study) -> Study:
    """Give a study without a question of its own that of its kind."""
    if settings.trial.question:
        return settings
    question = default_question(kind_of(settings.trial))
    return replace(settings, trial=replace(settings.trial, question=question))


def _settings(home: Path, problems: list[Problem]) -> ParsedSettings | None:
    path = find(home, FILE, str(home), FILE)
    if isinstance(path, Problem):
        if not (home / FILE).exists():
            rule = "every study must have one; `lore-active new` creates one"
            path = Problem(str(home), FILE, "missing", rule)
        problems.append(path)
        return None
    text = read_text(path, FILE, MAX_SETTINGS_BYTES)
    if isinstance(text, Problem):
        problems.append(text)
        return None
    return parsing.read(text, problems)


def _stimuli(
    home: Path, settings: ParsedSettings, begun: bool, problems: list[Problem]
) -> tuple[list[Item], tuple[Catch, ...]]:
    """Read items and catch questions, and validate settings that depend on them."""
    study = settings.study
    if not settings.valid("stimuli.folder", "stimuli.list", "stimuli.max_megabytes"):
        problems.extend(validation.contradictions(settings))
        return [], ()
    before = len(problems)
    items, listed = read_items(home, study.stimuli, problems, begun)
    all_valid = len(problems) == before
    # An invalid item would be reported again as unknown in every line that names it.
    catches: tuple[Catch, ...] = ()
    kind = _kind(settings)
    if all_valid and kind is not None:
        problems.extend(Problem(FILE, *problem) for problem in item_problems(kind, len(items)))
        if settings.valid("stimuli.catches"):
            catches = read_catches(home, study.stimuli.catches, listed, items, kind, problems)
    problems.extend(validation.contradictions(settings))
    if study.bots.positions and settings.valid("bots.positions"):
        path = find(home, study.bots.positions, FILE, "bots.positions")
        if isinstance(path, Problem):
            problems.append(path)
        elif all_valid:
            positions.examine(path, study.bots.positions, items, problems)
    return items, catches


def _kind(settings: ParsedSettings) -> Kind | None:
    """Return the kind of the questions; None if it is not valid, which is reported."""
    trial = settings.study.trial
    known = settings.valid("trial.kind", "trial.options", "trial.pick")
    return kind_of(trial) if known and not any(kind_problems(trial)) else None
