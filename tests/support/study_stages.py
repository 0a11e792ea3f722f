"""Real studies, one in each stage of the table: real store, service, worker and learner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers
from lore_active.stopping.verdict import Verdict
from server.learning.worker import Worker
from server.status import verdict as study_verdict
from server.store import imports
from server.store.database import Connection
from tests.support.open_study import Desk
from tests.support.simulated_participants import SimulatedParticipant

ITEMS = 12
SESSION = "[session]\ntrials = 24\npractice = 0\nbreak_every = 0\nfeedback = false\ncatch = 0.0\n"
# A rule that a small study meets soon, and one that it never does.
LENIENT = "[stopping]\nconfidence = 0.6\naudits = 3\nmin_answers = 60\n"
STRICT = "[stopping]\nconfidence = 0.999999\naudits = 60\n"
GUESSING = ObserverNoise(noise=0.1, lapse=1.0)
CAREFUL = ObserverNoise(noise=0.05)
NOISY = ObserverNoise(noise=0.6)
MAX_PARTICIPANTS = 40


def said(desk: Desk) -> Verdict:
    return desk.database.read(lambda c: study_verdict.read(c, desk.study, desk.now))


class Study:
    """A study that people take part in, one after the other, until something is reached."""

    def __init__(self, folder: Path, toml: str, rank: int = 2, seed: int = 5) -> None:
        self.desk = Desk(folder, SESSION + toml, ITEMS)
        self.worker: Worker = self.desk.worker()
        self.space = gaussian_space(ITEMS, rank, seed)
        self.participants = 0
        self.worker.turn()

    @property
    def stage(self) -> str:
        return said(self.desk).stage

    def collect(self, observer_noise: ObserverNoise, until: Callable[[Study], bool]) -> bool:
        """Participants answer, the worker follows; whether `until` came true before long."""
        for _ in range(MAX_PARTICIPANTS):
            self.participants += 1
            participant = SimulatedParticipant(
                self.desk.service,
                self.space,
                self.participants,
                observer_noise,
                wait=self.desk.wait,
            )
            done = 0
            while participant.step():
                done += 1
                if done % 4 == 0:
                    self.desk.now += 500
                    self.worker.turn()
                    if until(self):
                        return True
            if until(self):
                return True
        return False

    def finished(self) -> Desk:
        """Everybody has left, and the worker has followed."""
        self.desk.now += 3_600_000
        while self.worker.turn():
            pass
        return self.desk


def reached(
    folder: Path, name: str, toml: str, observer_noise: ObserverNoise, rank: int = 2
) -> Study:
    """A study that collects until it is in that stage; with other people, if these never are."""
    for seed in range(5, 9):
        study = Study(folder.with_name(f"{folder.name}{seed}"), toml, rank, seed)
        if study.collect(observer_noise, lambda one: one.stage == name):
            return study
        study.desk.close()
    raise AssertionError(f"no study came to {name!r}")


def no_answers(folder: Path) -> Desk:
    return Study(folder, STRICT).finished()


def none_counted(folder: Path) -> Desk:
    study = Study(folder, STRICT)
    study.collect(CAREFUL, lambda one: one.desk.rows("SELECT count(*) FROM models") > [(2,)])
    for number in range(1, study.participants + 1):
        study.desk.control.exclude("Ada", number, "a rehearsal")
    return study.finished()


def too_few(folder: Path) -> Desk:
    study = Study(folder, STRICT)
    study.collect(CAREFUL, lambda one: one.desk.rows("SELECT count(*) FROM answers") > [(9,)])
    return study.finished()


def something(folder: Path) -> Desk:
    return reached(folder, "something", STRICT, CAREFUL).desk


def early(folder: Path) -> Desk:
    return reached(folder, "early", STRICT + "min_answers = 4000\n", GUESSING).desk


def nothing_found(folder: Path) -> Desk:
    return reached(folder, "nothing found", STRICT + "min_answers = 40\n", GUESSING).desk


def settled(folder: Path) -> Desk:
    return reached(folder, "settled", LENIENT, CAREFUL, rank=1).finished()


def no_longer_settled(folder: Path) -> Desk:
    study = reached(folder, "settled", LENIENT.replace("60", "140"), CAREFUL, rank=1)
    # In the end there are fewer answers than the rule asks for at least.
    for number in range(1, study.participants):
        study.desk.control.exclude("Ada", number, "another language")
        if (study.participants - number) * 24 >= 140:
            continue
        desk = study.finished()
        if study.stage != "settled":
            break
    return desk


def stopped(folder: Path) -> Desk:
    study = reached(folder, "a rank", STRICT, CAREFUL)
    study.desk.control.stop("Ada", "The semester is over.")
    return study.finished()


def budget_spent(folder: Path) -> Desk:
    study = Study(folder, STRICT + "[budget]\nanswers = 192\n", seed=5)
    study.collect(CAREFUL, lambda one: one.desk.rows("SELECT count(*) FROM answers") == [(192,)])
    return study.finished()


def wavering(folder: Path) -> Desk:
    return reached(folder, "wavering", STRICT.replace("60", "12"), NOISY).desk


def a_rank(folder: Path) -> Desk:
    return reached(folder, "a rank", STRICT, CAREFUL).desk


BUILDERS: dict[str, Callable[[Path], Desk]] = {
    "no answers": no_answers,
    "none counted": none_counted,
    "too few": too_few,
    "something": something,
    "early": early,
    "nothing found": nothing_found,
    "settled": settled,
    "no longer settled": no_longer_settled,
    "stopped": stopped,
    "budget spent": budget_spent,
    "wavering": wavering,
    "a rank": a_rank,
}


def imported_only(folder: Path, answers: int = 60) -> Desk:
    """A study that nobody has answered, with answers from elsewhere."""
    study = Study(folder, STRICT)
    rows = simulated_answers(study.space, answers, 1, CAREFUL)
    triplets = [tuple(int(item) for item in row) for row in rows]

    def work(c: Connection) -> None:
        imports.add(c, "0" * 64, "pilot.csv", triplets, study.desk.now)

    study.desk.database.write(work)
    return study.finished()
