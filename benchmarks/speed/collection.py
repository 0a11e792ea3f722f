"""A whole study through the service and the real worker, without HTTP: for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server import words_study
from lore_active.simulation.observers import ObserverNoise, gaussian_space
from server.collection.service import Service
from server.learning.worker import Worker
from server.store.database import Database
from server.study.workspace import open_study
from tests.support.simulated_participants import SimulatedParticipant

TOGETHER = 20
# What participants take for an answer, by the study's clock: five answers a second in all.
ANSWER_MS = 200
START = 1_790_000_000_000


@dataclass(frozen=True)
class Collecting:
    """A study that is being collected, its number of answers, and the time by its clock."""

    database: Database
    worker: Worker
    answers: int
    now: int


def collecting(
    folder: Path, items: int, answers: int, trials: int = 100, practice: int = 0
) -> Iterator[Collecting]:
    """Collect a study in `folder`, and stop after each answer for the worker's turn, if any."""
    words_study(folder, items, trials, practice)
    clock = [START]
    study, database = open_study(folder, lambda: clock[0])
    service = Service(database, study, lambda: clock[0])
    worker = Worker(database, study, lambda: clock[0], time.perf_counter)
    space, participants, come, done = gaussian_space(items, 3, 7), [], 0, 0
    while done < answers:
        while len(participants) < TOGETHER:
            come += 1
            participants.append(
                SimulatedParticipant(
                    service, space, come, ObserverNoise(noise=0.1), f"person{come}"
                )
            )
        for participant in participants:
            clock[0] += ANSWER_MS
            answering = participant.stage.kind in ("trial", "practice")
            if not participant.step():
                participants.remove(participant)
                break
            if answering:
                done += 1
                yield Collecting(database, worker, done, clock[0])
                if done == answers:
                    break
    database.close()


def collected(
    folder: Path, items: int, answers: int, say: Callable[[int], None] = lambda _: None
) -> float:
    """Collect a study in `folder`, the worker's turn after every ten answers.

    Gives the processor seconds that the worker's turns took.
    """
    spent = 0.0
    for study in collecting(folder, items, answers):
        if study.answers % 10 == 0:
            begun = time.thread_time()
            study.worker.turn()
            spent += time.thread_time() - begun
            say(study.answers)
    return spent
