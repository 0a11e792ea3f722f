"""Many studies at once: the same on this machine's cores, one by one, and on a cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lore_active.simulation.observers import gaussian_space, simulated_answers
from lore_active.simulation.planning import COMPARED, SHARES
from tests.support.commands import completed

COMMAND = str(Path(sys.executable).with_name("lore-active"))
SIMULATE = ("simulate", "--items", 8, "--rank", 1, "--answers", 60, "--no-stop", "--json")


def run(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


def lines(output):
    assert output.returncode == 0, output.stderr
    return [json.loads(line) for line in output.stdout.splitlines()]


def without_seconds(record):
    return {key: value for key, value in record.items() if not key.endswith("_seconds")}


@pytest.fixture(scope="module")
def on_two_cores():
    return lines(run(*SIMULATE, "--seed", 3, "--seeds", 3, "--jobs", 2))


def test_a_sweep_gives_what_each_study_gives_alone(on_two_cores):
    *ends, total = on_two_cores
    assert [end["seed"] for end in ends] == [3, 4, 5]
    alone = lines(completed(*SIMULATE, "--seed", 5))[-1]
    assert without_seconds(ends[2]) == {"seed": 5, **without_seconds(alone)}
    assert (total["sweep"], total["studies"]) == (True, 3)
    assert total["right"] <= total["stopped"] <= 3


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and two workers as processes of their own; gives the scheduler's address."""
    started = [dask("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")]
    try:
        address = said(started[0], r"Scheduler at:\s+(tcp://\S+)")
        for _ in range(2):
            started.append(dask("dask_worker", address, "--no-nanny", "--nthreads", "1"))
        for worker in started[1:]:
            said(worker, r"(Registered to)")
        yield address
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()


def dask(kind, *arguments):
    # Its messages go to a pipe that is read to the line that matters; the rest is little.
    command = [sys.executable, "-m", f"distributed.cli.{kind}", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def said(process, pattern):
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"{process.args} ended without {pattern}")


def test_a_cluster_of_two_workers_gives_the_same(on_two_cores, cluster):
    output = run(*SIMULATE, "--seed", 3, "--seeds", 3, "--scheduler", cluster)
    assert [without_seconds(line) for line in lines(output)] == [
        without_seconds(core) for core in on_two_cores
    ]


def test_a_plan_on_a_cluster_is_the_same_plan(cluster):
    plan = ("plan", "--items", 4, "--ranks", "1", "--runs", 1, "--json")
    here = lines(completed(*plan, "--jobs", 1))
    there = lines(run(*plan, "--scheduler", cluster))
    assert here == there
    # A row for each selector and each smallest dimension of interest.
    assert [record["runs"] for record in here[1:]] == [1] * len(COMPARED) * len(SHARES)


def test_methods_are_compared_side_by_side_as_one_by_one(tmp_path, cluster):
    file = tmp_path / "answers.csv"
    rows = simulated_answers(gaussian_space(8, 1, 1), 120, 2)
    np.savetxt(file, rows, fmt="%d", delimiter=",", header="anchor,nearer,farther", comments="")
    compare = ("compare", file, "--methods", "lore,lore-cv,soe", "--folds", 2, "--json")
    found = [lines(completed(*compare))[0], lines(run(*compare, "--scheduler", cluster))[0]]
    for finding in found:
        for method in finding["methods"]:
            method.pop("seconds")
            for fold in method["folds"]:
                fold.pop("seconds")
    assert found[0] == found[1]
    assert [finding["method"] for finding in found[0]["methods"]] == ["lore", "lore-cv", "soe"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--scheduler", "tcp://127.0.0.1:1", "--seeds", 2), "cannot be reached"),
        (("--scheduler", "nonsense", "--seeds", 2), "cannot be reached"),
    ],
)
def test_a_scheduler_that_cannot_be_reached_is_said_in_one_sentence(arguments, sentence):
    assert_refused(run(*SIMULATE, *arguments), sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--scheduler", "tcp://127.0.0.1:1", "--jobs", 2, "--seeds", 2), "--jobs is for this"),
        (("--jobs", 2), "require --seeds"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(arguments, sentence):
    assert_refused(completed(*SIMULATE, *arguments), sentence)


def assert_refused(output, sentence):
    assert output.returncode == 2
    assert sentence in output.stderr
    assert "Traceback" not in output.stderr
    assert output.stdout == ""
