"""A study in a folder with a clock that tests turn by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lore_active.simulation.observers import gaussian_space
from server.collection.controls import Control
from server.collection.screens import CONTINUED, Response, Screen, Welcome
from server.collection.service import Service
from server.learning.worker import Worker
from server.store.database import Database
from server.study.workspace import open_study
from tests.support.live_server import write_study

# The side that was chosen of a triplet: answers are `a`, their questions `q`.
SIDE = (
    "CASE WHEN a.outcome <> 'chosen' THEN a.outcome "
    "WHEN a.chosen ->> 0 = q.options ->> 0 THEN 'left' ELSE 'right' END"
)
SIDES = f"SELECT {SIDE} FROM answers a JOIN queries q ON q.id = a.query"

# A study that does not end by itself.
LONG_STUDY = """
[session]
trials = 40
practice = 0
break_every = 0
feedback = false
[stopping]
audits = 40
[budget]
answers = 5000
"""


def response(answer: str | Response) -> Response:
    """A side of a triplet as the position of the option."""
    sides: dict[str | Response, Response] = {"left": (0,), "right": (1,)}
    return sides.get(answer, answer)  # type: ignore[arg-type]


def simulated_numbers(database: Database) -> list[int]:
    """Numbers of the simulated participants."""
    chosen = "SELECT id FROM participants WHERE simulated = 1"
    return [number for (number,) in database.read(lambda c: list(c.execute(chosen)))]


class Desk:
    """A study, its service, its controls and a clock."""

    def __init__(self, folder: Path, toml: str = "", items: int = 12) -> None:
        self.now = 1_000_000_000
        self.folder = folder
        if not folder.exists():
            write_study(folder, toml, items)
        self.open()

    def open(self) -> None:
        self.study, self.database = open_study(self.folder, self.clock)
        self.service = Service(self.database, self.study, self.clock)
        self.control = Control(self.database, self.clock)

    def close(self) -> None:
        self.database.close()

    def clock(self) -> int:
        return self.now

    def wait(self, ms: float) -> None:
        """Let time pass."""
        self.now += ceil(ms)

    def worker(self) -> Worker:
        return Worker(self.database, self.study, self.clock, time.perf_counter)

    def rows(self, sql: str, *values) -> list[tuple]:
        return self.database.read(lambda c: [tuple(row) for row in c.execute(sql, values)])

    def new_participant(self, simulated: bool = False, **entry: str) -> Screen:
        """A participant who has agreed and read the instructions."""
        came = self.service.arrive(entry, simulated=simulated)
        assert isinstance(came, Welcome)
        self.service.visit(came.token)
        self.service.consent(came.token, True)
        return self.service.begin(came.token)

    def answer(self, stage: Screen, answer: str | Response = "left") -> Screen:
        """The next stage, breaks taken; the answer is a side of a triplet, or positions."""
        assert stage.trial is not None
        following = self.service.answer(stage.participant, stage.trial.token, response(answer))
        while following.kind in CONTINUED:
            following = self.service.rest(following.participant, following.done)
        return following


class Respondent:
    """Answers from a space."""

    def __init__(self, items: int, rank: int, seed: int = 1, noise: float = 0.3) -> None:
        self.space = gaussian_space(items, rank, seed)
        self.rng = np.random.default_rng(seed)
        self.noise = noise

    def side(self, stage: Screen) -> str:
        trial = stage.trial
        assert trial is not None and trial.anchor is not None
        anchor, left, right = (self.space[k] for k in trial.items)
        gap = np.linalg.norm(anchor - right) - np.linalg.norm(anchor - left)
        return "left" if gap + self.noise * self.rng.normal() > 0 else "right"


def desk_fixture(toml: str = "", items: int = 12) -> Any:
    """A fixture of a study with these settings, closed after the test."""

    @pytest.fixture
    def desk(tmp_path: Path) -> Iterator[Desk]:
        opened = Desk(tmp_path / "words", toml, items=items)
        yield opened
        opened.close()

    return desk
