"""How long an update of the monitor takes in a big study, how large it is, and whom it slows."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Page
from server.monitor.feed import Feed
from server.store import collection, journal, models, questions
from server.store.database import Connection, Database
from server.store.journal import Step
from server.store.models import ModelRow
from server.study.workspace import open_study

ITEMS, ANSWERS, EACH = 300, 50_000, 80
FITS, AUDIT_EVERY = 480, 7
ROUNDS = 15
START = 1_790_000_000_000


def big_study(folder: Path, rank: int, answers: int = ANSWERS) -> tuple[Any, Database, list[int]]:
    """A study as it looks after months; its rows go through the store's own functions."""
    (folder / "stimuli").mkdir(parents=True)
    for number in range(ITEMS):
        (folder / "stimuli" / f"item{number:03d}.txt").write_text(f"item {number}")
    (folder / "study.toml").write_text('title = "Big"\nseed = 1\n[budget]\nanswers = 60000\n')
    clock = [START]
    study, database = open_study(folder, lambda: clock[0])
    rng = np.random.default_rng(1)
    participants = answers // EACH
    for first in range(0, participants, 25):
        database.write(
            lambda c, first=first: _participants(
                c, rng, range(first, min(participants, first + 25)), clock
            )
        )
    database.write(lambda c: _models(c, rng, rank, answers, clock[0]))
    return study, database, clock


def _participants(
    c: Connection, rng: np.random.Generator, numbers: range, clock: list[int]
) -> None:
    for number in numbers:
        who = collection.add_participant(
            c, f"token-{number}", f"PROLIFIC_PID={number:024x}", {}, "", EACH, clock[0]
        )
        for slot in range(EACH):
            clock[0] += 400
            answer(c, rng, who.id, slot, clock[0])
        collection.change_participant(
            c, who.id, stage="finished", done=EACH, seen_at=clock[0], finished_at=clock[0]
        )


def answer(c: Connection, rng: np.random.Generator, who: int, slot: int, now: int) -> None:
    """One question and its answer."""
    anchor, left, right = (int(one) for one in rng.choice(ITEMS, 3, replace=False))
    purpose = str(rng.choice(["active", "random", "catch"], p=[0.8, 0.15, 0.05]))
    known = (left,) if purpose == "catch" else ()
    token = f"{who}-{slot}"
    question = questions.NewQuestion(
        "schedule", purpose, anchor, (left, right), known, None, None, "1"
    )
    questions.lease_new(c, question, 1, who, slot, token, now, now + 120_000)
    issued = questions.issued(c, token)
    assert issued is not None
    chosen = (left if rng.random() < 0.5 else right,)
    timings = {"rt_ms": 1500.0, "away": [], "viewport": [1440, 900, 2], "pointer": "mouse"}
    rt_ms = float(rng.lognormal(7.3, 0.4))
    questions.add_answer(c, issued.id, "chosen", chosen, False, now, rt_ms, timings)


def _models(c: Connection, rng: np.random.Generator, rank: int, answers: int, now: int) -> None:
    for fit in range(1, FITS + 1):
        model(c, rng, rank, fit, answers * fit // FITS, now)


def model(c: Connection, rng: np.random.Generator, rank: int, fit: int, seq: int, now: int) -> None:
    """A published model with its decision."""
    z = np.ascontiguousarray(np.random.default_rng(fit // 50).normal(size=(ITEMS, rank)))
    roots = rng.normal(size=(ITEMS, rank, rank)) * 0.1
    covariance = np.ascontiguousarray(roots @ roots.transpose(0, 2, 1))
    work = "audit" if fit % AUDIT_EVERY == 0 else "refit"
    seconds = {work: 0.5, "select": 0.1}
    journal.add_step(c, Step(fit, now, seq, seq, 0, work, 50, (), fit, "", seconds))
    evidence = [
        {"rank": number, "lam": 0.01, "temperature": 1.0, "loss": 0.5, "accuracy": 0.75,
         "difference": 0.01 * abs(number - rank), "error": 0.002}
        for number in range(11)
    ]  # fmt: skip
    summary = {
        "spectrum": rng.random(rank).tolist(),
        "evidence": evidence,
        "prequential": {"count": 200, "value": 0.78, "low": 0.72, "high": 0.83},
        "ceiling": 0.86,
        "random_share": 0.1,
    }
    row = ModelRow(
        fit, fit, seq, seq, int(work == "audit"), rank, 0.01, 1.0, 1.0, 1, z.tobytes(),
        z.tobytes(), covariance.tobytes(), json.dumps(summary), "", ""
    )  # fmt: skip
    models.add_model(c, row)
    names = ("items_seen", "answers", "better_than_chance", "audits_unchanged",
             "preferred_to_fewer", "preferred_to_more", "bayes_factor_fewer",
             "bayes_factor_more")  # fmt: skip
    reasons = [{"name": name, "value": 1.0, "threshold": 2.3, "passed": False} for name in names]
    models.add_decision(
        c, fit, False, False, rank, "Continue: " + "a sentence " * 30, json.dumps(reasons)
    )


def milliseconds(action: Callable[[], Any]) -> float:
    """Of the processor: what others do on the machine is not counted."""
    begun = time.thread_time()
    action()
    return 1000 * (time.thread_time() - begun)


def measure(rank: int) -> list[object]:
    """Milliseconds and bytes of the updates of one study."""
    rng = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as home:
        study, database, clock = big_study(Path(home) / "big", rank)
        feed = Feed(database, study, lambda: clock[0])
        cold = milliseconds(lambda: feed.update(True))
        same = [milliseconds(lambda: feed.update(True)) for _ in range(ROUNDS)]
        after_answers, after_fit = [], []
        new_participant = database.write(
            lambda c: collection.add_participant(c, "new", None, {}, "", 5000, clock[0])
        )
        for turn in range(ROUNDS):
            clock[0] += 3000

            def answers(c: Connection, turn: int = turn) -> None:
                for slot in range(20 * turn, 20 * turn + 20):
                    answer(c, rng, new_participant.id, slot, clock[0])

            database.write(answers)
            after_answers.append(milliseconds(lambda: feed.update(True)))
            clock[0] += 3000
            fit = FITS + 1 + turn
            database.write(lambda c, fit=fit: model(c, rng, rank, fit, ANSWERS, clock[0]))
            after_fit.append(milliseconds(lambda: feed.update(True)))
        update = feed.update(True)
        database.close()
    return [
        rank,
        f"{np.median(same):.1f}",
        f"{np.median(after_answers):.0f} ({max(after_answers):.0f})",
        f"{np.median(after_fit):.0f} ({max(after_fit):.0f})",
        f"{cold:.0f}",
        f"{len(update.plain) / 1000:.0f}",
        f"{len(update.packed) / 1000:.0f}",
    ]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--participants", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--monitors", type=int, default=10)
    chosen = parser.parse_args()
    page = Page("monitor", "The monitor of a large study, and with many participants",
                "make bench-monitor")  # fmt: skip
    page.text(
        f"{ITEMS} items, {ANSWERS:,} answers of {ANSWERS // EACH} participants, {FITS} models. "
        "Milliseconds of processor time for an update on the server (median, and the longest of "
        f"{ROUNDS}): without new answers, after 20 more answers, after a new model, and the first "
        "update after the server starts. Kilobytes of one update, uncompressed and as sent (gzip)."
    )
    page.table(
        ["rank", "nothing new", "20 answers", "new model", "first", "kB", "kB sent"],
        [measure(rank) for rank in (3, 10)],
    )
    beside(page, chosen.participants, chosen.seconds, chosen.rounds, chosen.monitors)
    page.write()


def beside(page: Page, participants: int, seconds: float, rounds: int, monitors: int) -> None:
    """What open monitors cost participants."""
    from benchmarks.load.monitor_load import compared

    rows = compared(participants, seconds, rounds, monitors)
    page.text(
        f"## With participants\n\n{participants} simulated participants over HTTP, a second per "
        f"answer, {rounds} periods of {seconds:g} s with {monitors} monitors (each polling every "
        "three seconds, as the page does) and as many without, alternating, in one running study. "
        "Milliseconds from sending an answer to receiving the next question, over all periods."
    )
    page.table(["monitors", "answers", "errors", "p50 ms", "p95 ms", "p99 ms", "updates"], rows)


if __name__ == "__main__":
    main()
