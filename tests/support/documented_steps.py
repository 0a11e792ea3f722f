"""Doing what a page of the documentation says, line by line, as its reader would."""

from __future__ import annotations

import re
import shlex
import signal
import tempfile
import threading
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.server import Serving, wait_until
from lore_active.learner.cadence import FIRST_AUDIT
from server.cli.main import main
from server.clock import now
from server.processes.bots import BotPage, Browser
from server.store import models
from server.store.database import Database
from server.study.loading import load

ROOT = Path(__file__).parents[2]
# These install or run everything there is; what stands behind them is checked instead.
NOT_HERE = {"make demo", "make test", "pip install ."}
# These take minutes, or ask a participant at a terminal: less to do, and no question, instead.
INSTEAD = {
    "lore-active plan tastes --ranks 1-4": "lore-active plan tastes --ranks 1 --runs 1",
    "lore-active plan colours --ranks 2-3": "lore-active plan --items 6 --ranks 1 --runs 1",
    "lore-active forget tastes 1": "lore-active forget tastes 1 --yes",
    "lore-active reset tastes": "lore-active reset tastes --yes",
}


def blocks(page: Path, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds; the site knows only those that begin at the margin."""
    found: list[str] = []
    inside: list[str] | None = None
    for line in page.read_text(encoding="utf-8").splitlines():
        assert not re.match(r"\s+```", line), f"{page}: a block is indented"
        fence = re.fullmatch(r"```(\w*)", line)
        if fence and inside is None:
            inside, kind = [], fence.group(1)
        elif fence and inside is not None:
            if kind in kinds:
                found.append("\n".join(inside) + "\n")
            inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{page}: a block has no end"
    return found


def commands(page: Path) -> list[str]:
    """Every line of the page's sh blocks, without comments."""
    lines = [line for text in blocks(page, "sh") for line in text.splitlines()]
    return [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]


def follow(page: Path) -> list[str]:
    """Do every command of the page in the current folder; gives those that were done."""
    done = []
    for line in commands(page):
        if line in NOT_HERE:
            continue
        done.append(line)
        program, name, *arguments = shlex.split(INSTEAD.get(line, line))
        assert program == "lore-active", f"{line}: not one of ours, and not in NOT_HERE"
        if name == "serve":
            _serve(arguments)
            continue
        if name == "doctor":
            # The usual port may be taken while tests run.
            arguments += ["--port", "0"]
        result = CliRunner().invoke(main, [name, *arguments])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    return done


def _serve(arguments: list[str]) -> None:
    """Start it, open both links, let bots or a person answer, and end it by Ctrl-C."""
    folder = Path(arguments[0])
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        # Where a rehearsal's copy goes.
        patch.setenv("TMPDIR", home)
        server = Serving(*arguments)
        try:
            address, name = server.address(), folder.name
            for path in ("/", f"/s/{name}/", f"/monitor/{name}/"):
                with urllib.request.urlopen(address + path, timeout=120) as reply:
                    assert reply.status == 200
            if "--bots" not in arguments:
                enough = take_part(address, name) >= FIRST_AUDIT * len(load(folder).items)
                _wait_for_model(folder / "study.db" if enough else None)
            else:
                kept = arguments[arguments.index("--keep") + 1] if "--keep" in arguments else ""
                copies = Path(kept).glob("*/study.db") if kept else Path(home).glob("*/*/study.db")
                _wait_for_model(*copies)
            server.process.send_signal(signal.SIGINT)
        finally:
            code = server.stop()
    assert code == 0
    assert any(line.startswith("Stopped.") for line in server.lines)


def _wait_for_model(path: Path | None) -> None:
    if path is not None:
        database = Database(path, now)
        try:
            wait_until(lambda: database.read(models.latest_model) is not None)
        finally:
            database.close()


def take_part(address: str, study: str) -> int:
    """A person who goes through a study over HTTP, from its link to the end; their answers."""
    browser, answers = Browser(address, threading.Event()), 0
    page = BotPage(browser.get(f"/s/{study}/"))
    while page.action is not None:
        fields = dict(page.fields)
        if page.action.endswith("/answer"):
            # By the alphabet; what people see in colours and foods is not the matter here.
            assert page.anchor is not None
            ordered = page.options[0] < page.options[1]
            fields["side"] = "left" if ordered == (page.anchor < "m") else "right"
            answers += 1
        elif page.buttons and page.buttons[0][0]:
            fields[page.buttons[0][0]] = page.buttons[0][1]
        page = BotPage(browser.post(page.action, fields))
    browser.close()
    return answers
