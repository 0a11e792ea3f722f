"""Who answers faster than anybody can: judged by the server's own clock, flagged, never refused."""

from __future__ import annotations

import json
import random
import threading
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner

from server.cli.main import main
from server.monitor.feed import Feed
from server.processes.bots import BotPage, Browser
from tests.support.live_server import Clock, LiveServer, write_study

TRIALS = 30
TOML = f"""
[session]
trials = {TRIALS}
practice = 0
break_every = 10
feedback = false
[completion]
code = "DONE-30"
"""
SPEED = {"fast", "implausible"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def server(tmp_path, clock):
    opened = LiveServer(write_study(tmp_path / "words", TOML), clock=clock)
    yield opened
    opened.close()


def whole(onset, rt):
    return {"rt_ms": rt, "onset_at": onset, "response_at": onset + rt, "away": []}


# What a script may say about the ten milliseconds that it takes.
SCRIPTS = {
    "says nothing": lambda clock: "",
    "says how fast it was": lambda clock: json.dumps(whole(clock(), 9.5)),
    "pretends to have thought": lambda clock: json.dumps(whole(clock() - 1500, 1480.0)),
    "says what cannot be": lambda clock: json.dumps(whole(clock(), -250.0)),
    "leaves out the onset": lambda clock: json.dumps({"rt_ms": 1310.0}),
}


def take_part(server, name, answered):
    """Go through the whole study over HTTP; gives the last page. `answered` gives the timings."""
    own, rng = Browser(server.address, threading.Event()), random.Random(name)
    html = own.get(f"/s/words/?participant_label={quote(name)}")
    while (page := BotPage(html)).action is not None:
        fields = {**page.fields, "agreed": "yes"}
        if page.action.endswith("/answer"):
            # Both sides alike: nothing but speed gives it away.
            fields |= {"side": rng.choice(["left", "right"]), "timings": answered()}
        html = own.post(page.action, fields)
    own.close()
    return html


def flags(server):
    """What the monitor says of each participant, by the name they came with."""
    served = server.studies["words"]
    found = json.loads(Feed(served.database, served.study, served.service.clock).update(True).plain)
    rows = found["participants"]["rows"]
    return {row["external"].partition("=")[2]: set(row["flags"]) for row in rows}


def test_five_scripts_are_flagged_and_no_participant_is_refused(server, clock):
    for name, says in SCRIPTS.items():

        def answered(says=says):
            clock.wait(10)
            return says(clock)

        assert "DONE-30" in take_part(server, name, answered)
    found = flags(server)
    assert {name: "fast" in found[name] for name in SCRIPTS} == dict.fromkeys(SCRIPTS, True)
    lying = {name for name in SCRIPTS if "implausible" in found[name]}
    assert lying == {"pretends to have thought", "says what cannot be", "leaves out the onset"}
    rows = server.studies["words"].database.read(
        lambda c: c.execute("SELECT count(*) FROM answers").fetchone()
    )
    assert tuple(rows) == (5 * TRIALS,)


@pytest.mark.parametrize("scripts", [True, False])
def test_fast_participants_are_not_flagged(server, clock, scripts):
    for name in range(5):
        rng = np.random.default_rng(name)

        def answered(rng=rng):
            # Half of the answers within 0.45 s, behind a good or a bad connection.
            rt = float(rng.lognormal(np.log(450.0), 0.3))
            clock.wait(rng.uniform(5, 120))
            onset = clock()
            clock.wait(rt)
            return json.dumps(whole(onset, round(rt, 1))) if scripts else ""

        assert "DONE-30" in take_part(server, f"quick {name}", answered)
    found = flags(server)
    assert len(found) == 5
    assert not SPEED & set().union(*found.values())


def test_an_erased_participant_is_not_flagged_as_a_script(tmp_path, clock):
    """Of times only the days are left then, which says nothing about speed."""
    folder = write_study(tmp_path / "words", TOML)
    server = LiveServer(folder, clock=clock)

    def answered():
        clock.wait(1500)
        return json.dumps(whole(clock() - 1200, 1200.0))

    take_part(server, "gone", answered)
    assert not flags(server)["gone"] & SPEED
    server.close()
    result = CliRunner().invoke(main, ["forget", str(folder), "1", "--yes"])
    assert result.exit_code == 0, result.output
    server = LiveServer(folder, clock=clock)
    served = server.studies["words"]
    ((zero, count),) = served.database.read(
        lambda c: c.execute(
            "SELECT count(*) FILTER (WHERE received_at % 86400000 = 0), count(*) FROM answers"
        ).fetchall()
    )
    assert zero == count == TRIALS
    shown = json.loads(Feed(served.database, served.study, clock).update(True).plain)
    (row,) = shown["participants"]["rows"]
    assert not SPEED & set(row["flags"]) and row["median_ms"] == 1200
    server.close()
