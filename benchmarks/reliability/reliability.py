"""Everything that must not hurt: kills, cuts, ends, backups, damage, crowds, an hour's soak."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.endurance import (
    keeper,
    kept,
    run_arrivals,
    run_backups,
    run_cuts,
    run_damage,
    run_endings,
    run_soak,
)
from benchmarks.reliability.process_kills import kill_cycles
from benchmarks.reliability.sustained_load import runs
from benchmarks.server import words_study
from benchmarks.tables import Page


def run_kills(cycles: int, each: int) -> None:
    """What is missing in rounds of kills, each on a fresh study."""
    while sum(record["cycles"] for record in kept("reliability")) < cycles:
        with tempfile.TemporaryDirectory() as home:
            folder = words_study(Path(home) / "words", 30)
            damage = kill_cycles(folder, each, 8, lambda say: print(say, file=sys.stderr))
        keeper("reliability")({"cycles": each, **asdict(damage)})


def tell_kills(page: Page, done: list[dict[str, Any]]) -> None:
    """Kills under load."""
    page.text(
        "## Kills\n\n"
        "Eight clients answer as fast as they can while the web process, the worker, or both are "
        "killed with SIGKILL; the supervisor restarts them. Afterwards every acknowledged answer "
        "is looked up in the database."
    )
    names = ("cycles", "kills", "acknowledged", "lost", "doubled", "refused")
    rows: list[list[object]] = [[name, sum(record[name] for record in done)] for name in names]
    rows.append(["integrity check", ", ".join(sorted({record["integrity"] for record in done}))])
    rebuilt = sum(record["rebuilt"] for record in done)
    rows.append(["rebuilt to the published hash", f"{rebuilt} of {len(done)}"])
    page.table(["", "total"], rows)


def tell_cuts(page: Page, done: list[dict[str, Any]]) -> None:
    """Cut logs."""
    page.text(
        "## The log cut\n\n"
        "`study.db` and its write-ahead log are copied at random moments while six clients answer "
        "and the worker learns (all processes stopped for the moment of the copy). The copy's log "
        "is then damaged at a random byte: cut off there, followed by zeros or by noise, or one "
        "byte "
        "changed. Each time the database is opened as the server does. Valid means: it opens, "
        "SQLite's integrity and foreign-key checks pass, every participant's count matches their "
        "answers, and the answers are the first ones of the whole log, the more the later it was "
        "damaged. Only logs of which nothing has been copied back to `study.db` are used: what "
        "has, "
        "was on disk before and cannot be cut off by a loss of power."
    )
    cuts = sum(record["cuts"] for record in done)
    problems = [problem for record in done for problem in record["problems"]]
    answers = [record["answers"] for record in done]
    page.table(
        ["", "total"],
        [
            ["places", cuts],
            ["copies", len(done)],
            ["answers in a copy", f"{min(answers)} to {max(answers)}"],
            ["places that lost answers", sum(record["shorter"] for record in done)],
            [
                "acknowledged answers missing from a whole copy",
                sum(record["lost"] for record in done),
            ],
            ["not valid", len(problems)],
        ],
    )


def tell_soak(page: Page, taken: list[dict[str, Any]], ended: dict[str, Any]) -> None:
    """A long run."""
    minutes, answers = taken[-1]["minute"], ended["acknowledged"]
    note = ended.get("note", "")
    page.text(
        f"## Soak of {minutes:.0f} minutes\n\n{note}{' ' if note else ''}"
        f"{minutes:.0f} minutes with {answers / minutes / 60:.1f} answers a second over HTTP: 100 "
        "items in three dimensions, participants who leave after 200 questions and are replaced "
        "by others, a monitor open all the time (at one of the two web processes), and the worker "
        "learning at the same time. Samples every "
        "ten seconds. The load of the machine (two cores) was "
        f"{np.mean([record['load'] for record in taken]):.0f} on average, so times are not those "
        "of an idle machine."
    )
    rows: list[list[object]] = [
        ["answers acknowledged", answers],
        ["participants who finished", taken[-1]["finished"]],
        ["errors", taken[-1]["errors"]],
        ["write-ahead log, largest", f"{max(record['wal_most'] for record in taken):.1f} MB"],
        ["database at the end", f"{taken[-1]['database']:.0f} MB"],
        ["answer, median of p50", f"{np.median([record['p50_ms'] for record in taken]):.0f} ms"],
        ["answer, median of p99", f"{np.median([record['p99_ms'] for record in taken]):.0f} ms"],
        ["answers behind, most", max(record["behind"] for record in taken)],
        ["acknowledged but not stored", max(0, answers - ended["stored"])],
        ["worker restarts", ended["restarts"]],
        ["integrity check", ended["integrity"]],
    ]
    page.table(["", ""], rows)
    page.text(
        "Memory (resident, MB), descriptors and threads: means of the samples around a tenth of "
        "the time, half of it, and at its end. Growth is from half to end, divided by the answers "
        "that came in between. The worker's learner keeps every question and answer, and an open "
        "monitor keeps a row of numbers for each (40 bytes), so their memory follows the study's "
        "size; what does not follow it should not grow."
    )
    page.table(
        ["", "memory at 10 %", "50 %", "end", "bytes per answer", "descriptors", "threads"],
        [_usage(taken, kind) for kind in taken[-1]["processes"]],
    )


def _usage(taken: list[dict[str, Any]], kind: str) -> list[object]:
    def around(share: float, what: str) -> float:
        width = max(1, len(taken) // 20)
        at = int(share * (len(taken) - 1))
        some = taken[max(0, at - width) : at + width + 1]
        known = [record["processes"].get(kind, {}).get(what, math.nan) for record in some]
        return float(np.mean(known))

    places = (0.1, 0.5, 1.0)
    memory = [around(place, "rss") for place in places]
    answers = taken[-1]["acknowledged"] - taken[len(taken) // 2]["acknowledged"]
    growth = (memory[2] - memory[1]) * 2**20 / max(1, answers)

    def steady(what: str) -> str:
        return " → ".join(_whole(around(place, what)) for place in places)

    values = [_whole(value) for value in memory]
    return [kind, *values, _whole(growth), steady("fds"), steady("threads")]


def _whole(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0f}"


def tell_arrivals(page: Page, one: dict[str, Any]) -> None:
    """A crowd that arrives within a minute."""
    page.text(
        "## Arrivals\n\n"
        f"{one['participants']:,} participants, each with a link and a connection of their own, "
        f"arrive within {one['seconds']:.0f} s at a server with its worker running. Those asked to "
        "try again do so after a second. Seconds from arrival to the consent page."
    )
    page.table(
        ["", ""],
        [
            ["participants who got their page", f"{one['served']:,}"],
            ["participants stored", f"{one['stored']:,}"],
            ["lost", one["lost"]],
            ["answers of 500", one["errors"]],
            ["asked to try again, or not let in at once", one["again"]],
            ["until the last had their page", f"{one['took']:.1f} s"],
            ["median", f"{one['p50']:.2f} s"],
            ["p99", f"{one['p99']:.2f} s"],
            ["processor time of the web processes for one arrival", f"{one['cpu_ms']:.1f} ms"],
            ["load of the machine (two cores)", f"{one['load']:.0f}"],
        ],
    )


def tell_endings(page: Page, done: list[dict[str, Any]]) -> None:
    """SIGTERM with answers in flight."""
    page.text(
        "## SIGTERM with answers in flight\n\n"
        "Sixteen clients answer without pause, half of them with a kept-alive connection, half "
        "with a new one for each request, while the server is sent SIGTERM at a random moment. "
        "Acknowledged answers are then looked up in the database. A request is dropped if its "
        "connection was made and then closed or reset without a response."
    )
    dropped = sum(sum(record["dropped"].values()) for record in done)
    codes = {code for record in done for code in record["codes"]}
    page.table(
        ["", "total"],
        [
            ["rounds", sum(record["rounds"] for record in done)],
            ["answers acknowledged", sum(record["acknowledged"] for record in done)],
            ["acknowledged and not stored", sum(record["lost"] for record in done)],
            ["requests dropped without a response", dropped],
            ["requests told 503", sum(record["unavailable"] for record in done)],
            [
                "connections refused (each client's last)",
                sum(record["turned_away"] for record in done),
            ],
            ["exit codes", ", ".join(sorted(codes))],
            ["slowest end", f"{max(record['slowest_seconds'] for record in done):.1f} s"],
        ],
    )


def tell_backups(page: Page, one: dict[str, Any]) -> None:
    """Latency beside a backup."""
    page.text(
        "## Answers during a backup\n\n"
        f"A study of {one['answers']:,} answers ({one['megabytes']:.0f} MB). Sixteen clients "
        "answer with short pauses at one web process, without a worker. Five seconds without a "
        f"backup and one backup (median {one['seconds']:.1f} s) alternate, {one['rounds']} times. "
        "Milliseconds until the next page has arrived. The write-ahead log grew to "
        f"{one['log_megabytes']:.0f} MB. "
        f"The load of the machine (two cores) was {one['load']:.0f}."
    )
    names = ("p50", "p95", "p99", "most")
    rows: list[list[object]] = [
        [what, int(one[kind]["count"]), *(f"{one[kind][name]:.0f}" for name in names)]
        for what, kind in (("during a backup", "beside"), ("otherwise", "alone"))
    ]
    more = [f"{one['beside'][name] - one['alone'][name]:+.0f}" for name in names]
    page.table(["", "answers", *names], [*rows, ["difference", "", *more]])


def tell_damage(page: Page, done: list[dict[str, Any]]) -> None:
    """Recovery after random damage."""
    page.text(
        "## Recovery after random damage\n\n"
        f"A study of {done[0]['answers']:,} answers as a crash leaves it (the newest in the "
        "write-ahead log), whose last backup lacks a tenth of them. One file is damaged at random: "
        "up to five pages of zeros, of noise, with a sector of zeros, or in the place of others; "
        "up to 19 changed bytes; the file cut off anywhere; other bytes at its beginning; no file. "
        "Then `lore-active recover` runs, and what it recovers and reports is compared with the "
        "truth. "
        "Every result must pass SQLite's checks and open as a study."
    )

    def row(what: str, some: list[dict[str, Any]]) -> list[object]:
        shares = sorted(100 * record["recovered"] / record["answers"] for record in some)
        whole = sum(record["recovered"] == record["answers"] for record in some)
        middle = float(np.median(shares))
        return [what, len(some), whole, f"{middle:.1f} %", f"{shares[0]:.1f} %"]

    groups: list[list[object]] = []
    for backup in (True, False):
        for file in ("study.db", "study.db-wal"):
            some = [
                record for record in done if record["backup"] == backup and record["file"] == file
            ]
            if some:
                groups.append(row(f"{file}, {'with' if backup else 'without'} a backup", some))
    page.table(["damaged", "times", "all answers back", "median", "least"], groups)
    page.table(
        ["", "total"],
        [
            ["studies damaged", len(done)],
            ["errors", sum(bool(record["error"]) for record in done)],
            ["false reports that nothing is missing", _times(done, "false_nothing")],
            ["answers missing without being reported", _times(done, "unnamed")],
            ["answers that were never given", _times(done, "invented")],
            ["answers changed without a warning", _times(done, "altered")],
        ],
    )


def _times(done: list[dict[str, Any]], what: str) -> int:
    return sum(int(record[what]) for record in done)


def main() -> None:
    """Run what is missing, then write the page; with --page, write what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--round", type=int, default=50)
    parser.add_argument("--page", action="store_true", help="only write the page")
    chosen = parser.parse_args()
    if not chosen.page:
        run_kills(chosen.cycles, chosen.round)
        run_cuts(1000, 50)
        run_endings(100, 10, 16)
        run_damage(5000, 100)
        run_backups(300_000, 12)
        run_arrivals(10_000, 60.0)
        run_soak(60.0, 50)
    title = "Reliability: kills, damage, backups, crowds and a long run"
    page = Page("reliability", title, "make bench-reliability")
    page.text(
        "Each part can be run alone and continues where it was interrupted: `python -m "
        "benchmarks.reliability.endurance "
        "cuts`, `endings`, `backups`, `damage`, `arrivals` or `soak --minutes 60`; `python -m "
        "benchmarks.reliability.reliability --page` writes this page from the stored results; "
        "sections that were not measured again are kept."
    )
    if done := kept("reliability"):
        tell_kills(page, done)
    if done := kept("cuts"):
        tell_cuts(page, done)
    if done := kept("endings"):
        tell_endings(page, done)
    if done := kept("backups"):
        tell_backups(page, done[-1])
    if done := kept("damage"):
        tell_damage(page, done)
    if done := kept("arrivals"):
        tell_arrivals(page, done[-1])
    for taken, ended in runs(kept("soak")):
        tell_soak(page, taken, ended)
    page.keep_others()
    page.write()


if __name__ == "__main__":
    main()
