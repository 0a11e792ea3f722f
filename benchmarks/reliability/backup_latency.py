"""Answers while a large study is backed up: does anybody wait for the backup?"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.process_kills import Client
from benchmarks.server import wait_until, words_study
from server.clock import now
from server.processes.listener import listen
from server.store.database import Connection
from server.store.recovery import backups
from server.store.sqlite.item_lists import listed, question_key
from server.study.workspace import open_study

ITEMS, EACH = 60, 200
TIMINGS = json.dumps({"onset": 12.3, "viewport": [1200, 800], "pointer": "mouse", "away": []})
CLIENTS, PAUSE = 16, 0.3
REST_SECONDS = 5.0


def large_study(folder: Path, answers: int) -> Path:
    """A study with that many answers, all of random questions."""
    words_study(folder, ITEMS)
    _, database = open_study(folder, now)
    try:
        database.write(lambda c: _fill(c, answers))
    finally:
        database.close()
    return folder


def _fill(c: Connection, answers: int) -> None:
    participants = answers // EACH
    c.executemany(
        "INSERT INTO participants (id, token, external, entry, agent, stage, trials, done, "
        "arrived_at, seen_at) VALUES (?, ?, ?, '{}', 'a browser', 'finished', ?, ?, 1000, 1000)",
        (
            (p, f"token{p:019d}", f"PROLIFIC_PID={p}", EACH, EACH)
            for p in range(1, participants + 1)
        ),
    )
    c.executemany(
        "INSERT INTO queries (id, origin, purpose, anchor, options, key, version, seed, "
        "created_at, participant, slot, token, leased_at, expires_at) "
        "VALUES (?, 'fallback', 'random', ?, ?, ?, 0, '1', 1000, ?, ?, ?, 1000, 2000)",
        _questions(participants),
    )
    c.executemany(
        "INSERT INTO answers (query, outcome, chosen, late, received_at, rt_ms, timings) "
        "SELECT id, 'chosen', json_array(options ->> 0), 0, 1500, 812.5, ? FROM queries",
        [(TIMINGS,)],
    )


def _questions(participants: int) -> Iterator[tuple[Any, ...]]:
    rng = random.Random(1)
    for participant in range(1, participants + 1):
        had: set[str] = set()
        while len(had) < EACH:
            anchor, left, right = rng.sample(range(ITEMS), 3)
            if (key := question_key(anchor, (left, right))) not in had:
                number, slot = (participant - 1) * EACH + len(had) + 1, len(had)
                had.add(key)
                options, token = listed((left, right)), f"question{number:016d}"
                yield number, anchor, options, key, participant, slot, token


@contextmanager
def web_alone(folder: Path) -> Iterator[str]:
    """A web process without a worker, which would have much to learn; its address."""
    listener = listen("127.0.0.1", 0)
    number, port = listener.fileno(), listener.getsockname()[1]
    os.set_inheritable(number, True)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "server.processes.web_process",
            str(folder),
            "--socket",
            str(number),
        ],
        stdin=subprocess.PIPE,
        pass_fds=(number,),
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listener.close()
        process.communicate()


def latencies(answers: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of answers while there is a backup under way, and while there is none."""
    with tempfile.TemporaryDirectory() as home:
        folder = large_study(Path(home) / "words", answers)
        stop, beside, alone = threading.Event(), [], []
        took, most_log = [], 0
        with web_alone(folder) as address:
            participants = [
                Client(address, "words", f"person{n}", stop, PAUSE * random.Random(n).random())
                for n in range(CLIENTS)
            ]
            for participant in participants:
                participant.start()
            wait_until(lambda: all(len(one.acknowledged) > 3 for one in participants), 120)
            for _ in range(rounds):
                begun = time.perf_counter()
                time.sleep(REST_SECONDS)
                halfway = time.perf_counter()
                _back_up(folder)
                ended = time.perf_counter()
                took.append(ended - halfway)
                most_log = max(most_log, (folder / "study.db-wal").stat().st_size)
                times = [time_ for participant in participants for time_ in list(participant.times)]
                alone += [time_[1] for time_ in times if begun < time_[0] < halfway - time_[1]]
                beside += [time_[1] for time_ in times if halfway < time_[0] < ended]
            stop.set()
            for participant in participants:
                participant.join(30)
        size = (folder / "study.db").stat().st_size
        kept = len(backups.every(folder))
    return {
        "answers": answers,
        "rounds": rounds,
        "megabytes": size / 1e6,
        "seconds": float(np.median(took)),
        "log_megabytes": most_log / 1e6,
        "kept": kept,
        "load": os.getloadavg()[0],
        "beside": _quantiles(beside),
        "alone": _quantiles(alone),
    }


def _back_up(folder: Path) -> None:
    """As the supervisor does it."""
    with subprocess.Popen(
        [sys.executable, "-m", "server.processes.backup_process", str(folder)],
        stdin=subprocess.PIPE,
    ) as process:
        assert process.wait() == 0


def _quantiles(seconds: list[float]) -> dict[str, float]:
    found = np.quantile(seconds, (0.5, 0.95, 0.99, 1.0)) * 1000
    return {"count": len(seconds), **dict(zip(("p50", "p95", "p99", "most"), found, strict=True))}
