"""How long a replay takes beside the worker, and how long and how large a big export gets."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.server import words_study
from benchmarks.speed.collection import collected
from benchmarks.tables import Page
from lore_active.questions.pool import AllQuestions, count_possible
from lore_active.warmup import warm
from server.clock import now
from server.store.hash_chain import records as chain
from server.store.sqlite.item_lists import listed, question_key
from server.store.sqlite.tables import CHAIN
from server.study.workspace import open_study

ITEMS = 50
EACH = 100
# The command as users run it; then what it took, as the last line.
MEASURED = """
import json, resource, sys, time
from server.cli.main import main
begun = time.perf_counter()
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code
spent = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"code": code or 0, "wall": time.perf_counter() - begun,
                  "processor": spent.ru_utime + spent.ru_stime, "kilobytes": spent.ru_maxrss}))
"""


def measured(*arguments: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a command with --json prints, and what it took in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", MEASURED, *(str(argument) for argument in arguments), "--json"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    printed, took = (json.loads(line) for line in result.stdout.strip().splitlines())
    return printed, took


def replay_table(page: Page, folder: Path, answers: int) -> None:
    """A study lived by the worker, and the same replayed."""
    warm()
    with threadpool_limits(1):
        worker = collected(
            folder, ITEMS, answers, lambda done: _say(done, answers) if done % 500 == 0 else None
        )
    log = folder / "export" / "log" / f"{folder.name}.log.jsonl"
    measured("export", folder, "--format", "log")
    found, took = measured("replay", log, "--verify")
    assert took["code"] == 0 and found["fingerprint_match"], found["mismatches"][:3]
    page.text(
        f"{answers:,} answers about {ITEMS} items through the service, a turn of the worker after "
        "every ten; then `lore-active replay --verify` of the exported log in a new process, "
        f"loading of the log included, on {os.cpu_count()} cores. Processor seconds, so that "
        f"other users of the machine do not count. {_load()}"
    )
    page.table(
        ["", ""],
        [
            ["models, questions, decisions compared bit for bit", f"{found['models_checked']:,}, "
             f"{found['questions_checked']:,}, {found['decisions_checked']:,}"],
            ["stored rows compared with the hash chain", f"{found['rows_checked']:,}"],
            ["mismatches", len(found["mismatches"])],
            ["worker, processor s", f"{worker:.1f}"],
            ["replay, processor s", f"{took['processor']:.1f}"],
            ["replay, s", f"{took['wall']:.1f}"],
            ["replay / worker (processor)", f"{took['processor'] / worker:.2f}"],
        ],
    )  # fmt: skip
    page.text(
        "A replay in a tenth of the original time is not possible on few cores, and the command "
        "says so. Whether a model follows "
        "from its answers can be verified to the last bit only by fitting them again, and "
        "questions only by selecting them again; that is all the worker did. A replay can work in "
        "parallel on an audit's five folds and on every selection of questions, which depends on "
        "the model before it but on no other selection. Audits themselves stay in order, since "
        "each starts from the model before it."
    )


def big_study(folder: Path, answers: int) -> Path:
    """A study with many answers; the rows are put in directly."""
    words_study(folder, ITEMS)
    _, database = open_study(folder, now)
    database.close()
    raw, rng = sqlite3.connect(folder / "study.db"), np.random.default_rng(1)
    raw.execute("PRAGMA synchronous = OFF")
    triplets = AllQuestions(ITEMS).new(count_possible(ITEMS), set(), rng)
    participants = answers // EACH
    raw.executemany(
        "INSERT INTO participants (id, token, external, entry, agent, stage, trials, done, "
        "arrived_at, seen_at) VALUES (?, ?, ?, '{}', 'a browser', 'finished', ?, ?, 1, 1)",
        (
            (who, f"p{who}", f"PROLIFIC_PID={who:024x}", EACH, EACH)
            for who in range(1, participants + 1)
        ),
    )
    timings = '{"rt_ms":1500.0,"away":[],"viewport":[1440,900,2],"pointer":"mouse"}'
    for who in range(1, participants + 1):
        first = (who - 1) * EACH + 1
        picked = rng.choice(len(triplets), EACH, replace=False)
        rows = triplets[picked].tolist()
        chosen = [row[1 + side] for row, side in zip(rows, rng.random(EACH) < 0.5, strict=True)]
        raw.executemany(
            "INSERT INTO queries (id, origin, purpose, anchor, options, key, version, "
            "score, seed, created_at, participant, slot, token, leased_at, expires_at) VALUES "
            "(?, 'learner', 'active', ?, ?, ?, 1, 0.123456789, '1/2', 1, ?, ?, ?, 1, 1)",
            (
                (
                    *(first + k, row[0], listed(row[1:]), question_key(row[0], row[1:])),
                    *(who, k, f"t{first + k}"),
                )
                for k, row in enumerate(rows)
            ),
        )
        raw.executemany(
            "INSERT INTO answers VALUES (?, ?, NULL, 0, ?, 1234.5, ?, 'chosen', ?)",
            (
                (first + k, first + k, 1_790_000_000_000 + first + k, timings, listed((item,)))
                for k, item in enumerate(chosen)
            ),
        )
    # As if the chain had been begun now: what it has of each row is in the log, too.
    for table in CHAIN:
        raw.execute(f"DELETE FROM {table}")
    chain.begin_period(raw, now(), chain.NEW)
    raw.commit()
    raw.close()
    return folder


def export_table(page: Page, home: Path, sizes: list[int]) -> None:
    """Exports of big studies: seconds and memory."""
    rows = []
    for answers in sizes:
        _say(answers, sizes[-1])
        folder = big_study(home / f"big{answers}", answers)
        for name in ("csv", "log", "triplettools", "cblearn", "psych-ds"):
            begun = time.perf_counter()
            report, took = measured("export", folder, "--format", name, "--out", home / name)
            assert took["code"] == 0
            size = sum(Path(file).stat().st_size for file in report["files"])
            rows.append(
                [
                    f"{answers:,}",
                    name,
                    f"{took['processor']:.1f}",
                    f"{time.perf_counter() - begun:.1f}",
                    f"{took['kilobytes'] / 1024:.0f}",
                    f"{size / 2**20:.0f}",
                ]
            )
    page.text(
        "Exports, each in a new process; peak memory, including the program. All but cblearn's "
        "are written in pieces; that one holds its array in memory, 16 bytes per answer and twice "
        f"that at the end. {_load()}"
    )
    page.table(["answers", "format", "processor s", "s", "memory MB", "written MB"], rows)


def _load() -> str:
    """How far plain seconds can be trusted."""
    return (
        f"{os.getloadavg()[0]:.0f} processes were using the {os.cpu_count()} cores at the end, "
        "including those of other users."
    )


def _say(done: int, of: int) -> None:
    print(f"{done:,} of {of:,} answers", file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--answers", type=int, default=10_000)
    options.add_argument("--rows", type=int, default=1_000_000)
    chosen = options.parse_args()
    page = Page("replay", "Replay and large exports", "make bench-replay")
    with tempfile.TemporaryDirectory() as home:
        export_table(page, Path(home), [chosen.rows // 10, chosen.rows])
        replay_table(page, Path(home) / "words", chosen.answers)
    page.write()


if __name__ == "__main__":
    main()
