"""Logs of the server's processes: their format, and the level that is passed on to them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from benchmarks.server import COMMAND, wait_until
from server.processes import logs
from tests.support.live_server import write_study

SAY = """
import logging
from server.processes import logs
logs.configure("worker")
logging.getLogger("a.module").info("told in detail")
logging.getLogger("a.module").warning("told")
"""
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) worker \d+, a\.module: (.*)")


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("info", [("INFO", "told in detail"), ("WARNING", "told")]),
        ("WARNING", [("WARNING", "told")]),
        ("nonsense", [("WARNING", "told")]),
        ("error", []),
    ],
)
def test_the_level_comes_from_the_environment_and_each_line_names_its_process(level, shown):
    done = subprocess.run(
        [sys.executable, "-c", SAY],
        env={**os.environ, logs.VARIABLE: level},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == ""
    assert [LINE.fullmatch(line).groups() for line in done.stderr.splitlines()] == shown


@pytest.mark.parametrize(("options", "logged"), [(["--log-level", "info"], True), ([], False)])
def test_serve_passes_the_level_on_and_its_own_output_stays_as_it_is(tmp_path, options, logged):
    folder = write_study(tmp_path / "words")
    errors = tmp_path / "errors.txt"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--web", "1", *options, str(folder)],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
        lines = []
        try:
            # Said once every process has been started and answers.
            while not lines or "Press Ctrl-C" not in lines[-1]:
                lines.append(process.stdout.readline())
                assert lines[-1], errors.read_text()
            if logged:
                wait_until(lambda: "Learning for words: 0 answers so far." in errors.read_text())
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=120)
    assert "Stopped. All answers are stored." in rest
    assert " INFO " not in "".join(lines) + rest
    assert (" INFO worker " in errors.read_text()) == logged
