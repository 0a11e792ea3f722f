"""A selector, a stopping rule and an export format from elsewhere: one file, and all know them.

The file is installed as another distribution would be, so every process finds it by itself.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.reliability.process_kills import Client
from benchmarks.server import Serving, wait_until
from lore_active.acquisition.registry import SELECTORS
from lore_active.errors import InvalidParameter
from lore_active.registry import Entry, Registry
from server.exports.registry import FORMATS, ExportFormat, holds_answers, register
from tests.support.live_server import write_study

TOYS = '''
"""Toys."""

from dataclasses import dataclass

import numpy as np

from lore_active.acquisition.registry import SELECTORS
from lore_active.registry import Entry
from lore_active.stopping.criteria import Criterion, CriterionText
from lore_active.stopping.criteria import register as register_criterion
from lore_active.stopping.registry import STOPPING_RULES
from server.exports.registry import ExportFormat, register


class FirstItems:
    name = "first-items"

    def pick(self, state, count, rng):
        from lore_active.acquisition.state import Selection

        rows = state.source.new(500, state.taken, rng)
        best = np.argsort(rows.sum(axis=1), kind="stable")[:count]
        return Selection(rows[best], -rows[best].sum(axis=1).astype(float))


@dataclass(frozen=True)
class Patience:
    audits: int = 5
    name: str = "patience"

    def decide(self, progress):
        from lore_active.stopping.rules import Decision

        rank = progress.audits[-1].rank if progress.audits else 0
        done = len(progress.audits)
        made = Criterion("audits_made", done, self.audits, done >= self.audits)
        return Decision(made.passed, made.passed, rank, (made,))


def write(database, study, out, choice, progress):
    path = out / "toys.txt"
    path.write_text(study.name)
    return [path]


SELECTORS.register(
    Entry(
        "first-items",
        "Asks about the first items.",
        FirstItems,
        "We asked about the first items",
        ("Toy, A. (2026). Asking about the first items.",),
    )
)
STOPPING_RULES.register(
    Entry(
        "patience", "Waits.", Patience, "some audits had been made", ("Toy, B. (2026). Waiting.",)
    )
)
register_criterion(
    CriterionText(
        "audits_made",
        "Some audits have been made",
        "there are few audits yet",
        lambda one, rank: f"{one.value:.0f} audits were made ({one.threshold:.0f} needed).",
        needs_rank=False,
    )
)
register(ExportFormat("toys", "the study's name", write, (r"toys\\.txt",)))
'''
STUDY = """
[session]
trials = 2000
practice = 0
break_every = 0
feedback = false
rush_ms = 0
[learning]
selector = "first-items"
[stopping]
rule = "patience"
audits = 2
"""


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """The path of processes that have the toys installed."""
    home = tmp_path / "site"
    (home / "toys-1.0.dist-info").mkdir(parents=True)
    (home / "toys.py").write_text(TOYS)
    (home / "toys-1.0.dist-info" / "METADATA").write_text("Name: toys\nVersion: 1.0\n")
    (home / "toys-1.0.dist-info" / "entry_points.txt").write_text(
        "[lore_active.plugins]\ntoys = toys\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(home), str(Path.cwd())]))
    return home


def run(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "server.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_toys_are_known_from_study_toml_to_erasure(toys, tmp_path):
    folder = write_study(tmp_path / "words", STUDY, items=8)
    run("check", folder)
    server = Serving("--web", "1", str(folder))
    stop = threading.Event()
    try:
        client = Client(server.address(), "words", "p1", stop, pause=0.05)
        client.start()
        wait_until(lambda: _state(folder) == "stopped")
    finally:
        stop.set()
        server.stop()
        client.join(30)
    verified = json.loads(run("replay", folder, "--verify", "--json"))
    assert verified["mismatches"] == [] and verified["questions_checked"] > 10
    run("report", folder, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "We asked about the first items" in page
    assert "Asking about the first items." in page and "(2026). Waiting." in page
    assert "some audits had been made" in page
    assert "Some audits have been made" in page and "audits were made (2 needed)" in page
    run("export", folder, "--format", "toys")
    assert (folder / "export" / "toys" / "toys.txt").read_text() == "words"
    assert "toys.txt" in run("forget", folder, "1", "--answers", "--yes")


def _state(folder):
    with closing(sqlite3.connect(folder / "study.db", timeout=60)) as database:
        return database.execute("SELECT status FROM state").fetchone()[0]


def test_without_them_the_study_is_refused_with_what_there_is(tmp_path):
    folder = write_study(tmp_path / "words", STUDY, items=8)
    output = run("check", folder, code=2)
    selectors = '"fisher" or "uncertainty" or "local" or "infotuple" or "random"'
    assert f'"first-items", but must be {selectors}' in output
    assert '"patience", but must be "rank_settled" or "smallest_dimension" or "unchanged"' in output


def test_a_name_can_be_taken_once():
    colours: Registry[str] = Registry("colour")
    colours.register(Entry("red", "Red.", lambda: "#f00"))
    with pytest.raises(InvalidParameter, match="'red' already"):
        colours.register(Entry("red", "Red.", lambda: "#e00"))
    with pytest.raises(ValueError, match="'csv' already"):
        register(ExportFormat("csv", "", FORMATS["csv"].write, ()))
    with pytest.raises(InvalidParameter, match="selector is 'nobody', but must be one of fisher"):
        SELECTORS.make("nobody")


def test_every_selector_is_what_it_is_called():
    assert [SELECTORS.make(name).name for name in SELECTORS] == list(SELECTORS)


@pytest.mark.parametrize("name", ["answers.csv", "words.log.jsonl", "words_triplets.npz"])
def test_files_that_hold_answers_are_known_by_their_names(name):
    assert holds_answers(name)
    assert not holds_answers("items.csv")
