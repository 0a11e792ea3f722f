"""A small study in the formats of the version that runs this, to be opened by every later one.

    python -m tests.golden.make NAME

writes tests/golden/NAME: the study's folder (its database as SQL), its log, and a snapshot of a
learner. Run it before a format changes, and never again for the same name.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from lore_active.learner import snapshot
from lore_active.learner.learner import Learner
from lore_active.simulation.observers import gaussian_space
from tests.support.commands import run
from tests.support.open_study import Desk, Respondent

HERE = Path(__file__).parent
ITEMS, BOTS, PARTICIPANTS = 8, 2, 7
TOML = """
[session]
trials = 24
practice = 1
catch = 0.1
repeat = 0.1
break_every = 10
[stopping]
min_answers = 60
"""


def study(folder: Path) -> None:
    """Bots, then people: one excluded, one excluded and restored, one who left; imported answers.

    0.1-format-5 is of a version that did not mark bots yet: there they came as people do.
    """
    desk = Desk(folder, TOML, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    for number in range(PARTICIPANTS):
        if number < BOTS:
            stage = desk.new_participant(True, participant_label=f"bot-{number + 1}")
        else:
            stage = desk.new_participant(PROLIFIC_PID=f"golden-{number}")
        while stage.kind in ("practice", "trial") and (number < PARTICIPANTS - 1 or stage.done < 9):
            desk.wait(900)
            stage = desk.answer(stage, participant.side(stage))
            if stage.done % 6 == 0:
                worker.turn()
        if stage.kind == "feedback" and number % 2 == 0:
            desk.service.feedback(stage.participant, "Nice words." if number > BOTS else "")
        worker.turn()
    desk.control.exclude("Ada", 4, "too fast")
    worker.turn()
    desk.control.exclude("Ada", 5, "by mistake")
    desk.control.restore("Ada", 5, "")
    worker.turn()
    desk.close()
    pilot = folder.parent / "pilot.csv"
    pilot.write_text("anchor,nearer,farther\nword00,word01,word02\nword03,word04,word05\n")
    run("import", pilot, folder)
    desk = Desk(folder)
    desk.worker().turn()
    desk.close()


def learner() -> Learner:
    """One that has audited, refitted and asked since."""
    made = Learner(ITEMS, seed=5)
    space, rng = gaussian_space(ITEMS, 2, 1), np.random.default_rng(1)
    for _ in range(20):
        for question in made.ask(6):
            near, far = (
                np.linalg.norm(space[question.anchor] - space[one])
                for one in (question.left, question.right)
            )
            nearer = "left" if near + 0.1 * rng.normal() < far else "right"
            made.tell(question.id, nearer, participant=f"P{question.id % 3}")
        if due := made.due():
            getattr(made, due)()
    made.ask(4)
    return made


def write(home: Path) -> None:
    """Everything, into a new folder."""
    home.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "words"
        study(folder)
        run("export", folder, "--format", "log", "--out", scratch + "/log")
        (log,) = (Path(scratch) / "log").rglob("*.jsonl")
        (home / "log.jsonl.gz").write_bytes(gzip.compress(log.read_bytes(), 9, mtime=0))
        with closing(sqlite3.connect(folder / "study.db")) as database:
            dump = "\n".join(database.iterdump())
        (home / "study.sql.gz").write_bytes(gzip.compress(dump.encode(), 9, mtime=0))
        shutil.copy(folder / "study.toml", home)
        shutil.copytree(folder / "stimuli", home / "stimuli")
    document, arrays = snapshot.dump(learner())
    (home / "snapshot.json").write_text(json.dumps(document))
    np.savez_compressed(home / "snapshot.npz", **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    write(HERE / sys.argv[1])
