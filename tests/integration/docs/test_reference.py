"""The reference says what the code does: commands, columns, addresses."""

from __future__ import annotations

import csv
import json
import re

import click
import numpy as np
import pytest
from click.testing import CliRunner

from docs.reference.make import HERE, ORDER, pages
from docs.reference.meanings import FIT, KINDS, LOG
from server.cli.main import main
from tests.support.open_study import Desk, Respondent

ITEMS = 6


@pytest.fixture(scope="module")
def made():
    return pages()


PAGES = ["commands.md", "columns.md", "endpoints.md", "modules.md", "stages.md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(made, name):
    assert list(made) == PAGES
    held = (HERE / name).read_text(encoding="utf-8")
    assert held == made[name].rstrip() + "\n", "run `make reference` and commit the result"


def test_every_command_and_option_says_what_it_is_for():
    for name, command in main.commands.items():
        assert command.help, name
        for param in command.params:
            assert not isinstance(param, click.Option) or param.help, (name, param.name)


def test_every_command_is_listed_in_order():
    assert set(main.commands) <= set(ORDER), "say where it belongs in docs/reference/make.py"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A whole study, small, with every kind of file written."""
    home = tmp_path_factory.mktemp("reference")
    toml = "[session]\ntrials = 30\npractice = 1\nbreak_every = 0\n"
    desk = Desk(home / "words", toml, items=ITEMS)
    worker, participant = desk.worker(), Respondent(ITEMS, 2)
    worker.turn()
    stage = desk.new_participant(PROLIFIC_PID="one")
    while stage.kind in ("practice", "trial"):
        stage = desk.answer(stage, participant.side(stage))
    desk.control.exclude("Ada", 1, "a trial")
    desk.control.restore("Ada", 1, "over")
    worker.turn()
    desk.close()
    (home / "pilot.csv").write_text("anchor,nearer,farther\nword00,word01,word02\n")
    result = CliRunner().invoke(main, ["import", str(home / "pilot.csv"), str(home / "words")])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(main, ["export", str(home / "words"), "--format", "all", "--json"])
    assert result.exit_code == 0, result.output
    return home / "words" / "export" / "all"


def section(made, title):
    """Names in the first column of the tables below a heading."""
    start = rf"^#+ {re.escape(title)}(?: \(.*?\))?\n"
    found = re.search(start + r"(.*?)(?=^#|\Z)", made["columns.md"], re.M | re.S)
    assert found, title
    return set(re.findall(r"^\| `([^`]+)` \|", found.group(1), re.M))


def test_every_column_that_is_written_is_explained(made, exported):
    # Those that have a column for each dimension, or no header, are described in a sentence.
    files = [
        file
        for file in exported.rglob("*.csv")
        if not file.name.endswith(("embedding.csv", "embedding_data.csv", "_targets.csv"))
    ]
    assert len(files) == 14
    for file in files:
        with file.open(encoding="utf-8", newline="") as text:
            header = next(csv.reader(text))
        name = re.sub("^words", "STUDY", file.name)
        unasked = set()
        if "_task-imported_" in name:
            name = "imported.csv"
        elif "_task-" in name:
            name = "data/" + name.replace("study-words", "study-STUDY")
            # Comments come with an option.
            unasked = {"feedback"} if "participants" in name else set()
        assert set(header) | unasked == section(made, name), file


def test_every_field_of_events_and_log_is_explained(made, exported):
    kinds = {one for names in KINDS for one in names.split(", ")}
    lines = (exported / "csv" / "events.jsonl").read_text().splitlines()
    assert lines
    for line in map(json.loads, lines):
        assert line["kind"] in kinds
        plain = {name for name in line if not name.startswith("detail_")}
        assert plain | {"detail_…"} == section(made, "events.jsonl") - set(KINDS)
    seen = set()
    for line in map(json.loads, (exported / "log" / "words.log.jsonl").read_text().splitlines()):
        assert set(line) == set(LOG)
        seen.add(line["kind"])
        if line["kind"] not in ("study", "end"):
            table = re.search(rf"\*\*{line['kind']}\*\*\n(.*?)(\*\*|##)", made["columns.md"], re.S)
            assert set(line["row"]) == set(re.findall(r"^\| `(\w+)` \|", table.group(1), re.M))
    assert seen >= {"study", "items", "participants", "queries", "answers", "events", "models"}


def test_arrays_and_fits_are_explained(made, exported, tmp_path):
    with np.load(exported / "cblearn" / "words_triplets.npz", allow_pickle=False) as held:
        assert set(held) == section(made, "STUDY_triplets.npz")
        np.save(tmp_path / "answers.npy", held["triplets"])
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "answers.npy"), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert list(json.loads((out / "fit.json").read_text())) == list(FIT)
    header = (out / "embedding.csv").read_text().splitlines()[0].split(",")
    assert re.fullmatch(r"item(,dim_\d+)*", ",".join(header))
