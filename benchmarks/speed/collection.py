"""A whole study through the service and the real worker, without HTTP: for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lore_active.simulation.observers import ObserverNoise, gaussian_space
from server.collection.service import Service
from server.learning.worker import Worker
from server.study.workspace import open_study
from tests.support.simulated_participants import SimulatedParticipant

SETTINGS = """title = "Words"
seed = 1
[session]
trials = 100
rush_ms = 0
practice = 0
break_every = 0
feedback = false
[budget]
answers = 10000000
[stopping]
min_answers = 9000000
"""
TOGETHER = 20
# What the people take for an answer, by the study's clock: five answers a second in all.
ANSWER_MS = 200
START = 1_790_000_000_000


def collected(
    folder: Path, items: int, answers: int, say: Callable[[int], None] = lambda _: None
) -> float:
    """Collect a study in `folder`, the worker's turn after every ten answers.

    Gives the processor seconds that the worker's turns took.
    """
    (folder / "stimuli").mkdir(parents=True)
    for number in range(items):
        (folder / "stimuli" / f"word{number:03d}.txt").write_text(f"word {number}")
    (folder / "study.toml").write_text(SETTINGS)
    clock = [START]
    study, database = open_study(folder, lambda: clock[0])
    service = Service(database, study, lambda: clock[0])
    worker = Worker(database, study, lambda: clock[0], time.perf_counter)
    space, participants, come, done, spent = gaussian_space(items, 3, 7), [], 0, 0, 0.0
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
            answering = participant.stage.kind == "trial"
            if not participant.step():
                participants.remove(participant)
                break
            if answering:
                done += 1
                if done % 10 == 0:
                    begun = time.thread_time()
                    worker.turn()
                    spent += time.thread_time() - begun
                    say(done)
    database.close()
    return spent
