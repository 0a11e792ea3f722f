"""The parts of `make bench-reliability` beside the kills; each runs alone."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.reliability.arrivals import arrivals
from benchmarks.reliability.backup_latency import latencies
from benchmarks.reliability.file_damage import numbered, original
from benchmarks.reliability.power_loss import cuts_under_load
from benchmarks.reliability.shutdown import end_rounds
from benchmarks.reliability.sustained_load import soak
from benchmarks.server import words_study
from benchmarks.tables import FOLDER

BUILD = FOLDER.parent.parent / "build"


def keeper(name: str) -> Callable[[dict[str, Any]], None]:
    """Writes one result a line to build/NAME.jsonl, and prints it."""
    BUILD.mkdir(exist_ok=True)

    def keep(one: dict[str, Any]) -> None:
        with (BUILD / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(one) + "\n")
        print(json.dumps(one), flush=True)

    return keep


def kept(name: str) -> list[dict[str, Any]]:
    """What was kept under that name so far."""
    file = BUILD / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_soak(minutes: float, rate: int, note: str = "") -> None:
    """One run from beginning to end: what should be flat cannot be put together from parts."""
    if any(record.get("minutes", 0) >= minutes for record in kept("soak")):
        return
    keep = keeper("soak")
    keep({**soak(minutes, rate, keep), "note": note})


def run_cuts(cuts: int, each: int) -> None:
    """What is missing, copy by copy."""
    keep = keeper("cuts")
    while (done := sum(record["cuts"] for record in kept("cuts"))) < cuts:
        for one in cuts_under_load(min(5, (cuts - done) // each or 1), each, seed=1 + done):
            keep(one)


def run_arrivals(participants: int, seconds: float) -> None:
    """Once."""
    if not any(record["participants"] >= participants for record in kept("arrivals")):
        keeper("arrivals")(arrivals(participants, seconds))


def run_endings(rounds: int, each: int, visitors: int) -> None:
    """What is missing, some rounds on a fresh study each time."""
    while (done := sum(record["rounds"] for record in kept("endings"))) < rounds:
        with tempfile.TemporaryDirectory() as home:
            folder = words_study(Path(home) / "words", 30)
            found = end_rounds(folder, min(each, rounds - done), visitors, 1 + done)
        keeper("endings")(found.figures())


def run_backups(answers: int, rounds: int) -> None:
    """Once."""
    if not any(record["answers"] >= answers for record in kept("backups")):
        keeper("backups")(latencies(answers, rounds))


def run_damage(answers: int, rounds: int) -> None:
    """What is missing, all of one study."""
    done = len(kept("damage"))
    if done >= rounds:
        return
    keep = keeper("damage")
    with tempfile.TemporaryDirectory() as home:
        made = original(Path(home), answers)
        for number in range(done, rounds):
            keep(asdict(numbered(made, number)))


def main() -> None:
    """Run one part, or write the page of what was measured so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("soak")
    one.add_argument("--minutes", type=float, default=60)
    one.add_argument("--rate", type=int, default=50)
    one.add_argument("--note", default="", help="what was special about this run")
    one = parts.add_parser("cuts")
    one.add_argument("--cuts", type=int, default=1000)
    one.add_argument("--each", type=int, default=50, help="cuts of one copy")
    one = parts.add_parser("arrivals")
    one.add_argument("--participants", type=int, default=10_000)
    one.add_argument("--seconds", type=float, default=60)
    one = parts.add_parser("endings")
    one.add_argument("--rounds", type=int, default=100)
    one.add_argument("--each", type=int, default=10, help="rounds on one study")
    one.add_argument("--visitors", type=int, default=16)
    one = parts.add_parser("backups")
    one.add_argument("--answers", type=int, default=300_000)
    one.add_argument("--rounds", type=int, default=12)
    one = parts.add_parser("damage")
    one.add_argument("--answers", type=int, default=5000)
    one.add_argument("--rounds", type=int, default=100)
    chosen = vars(parser.parse_args())
    PARTS[chosen.pop("part")](**chosen)


PARTS: dict[str, Callable[..., None]] = {
    "soak": run_soak,
    "cuts": run_cuts,
    "arrivals": run_arrivals,
    "endings": run_endings,
    "backups": run_backups,
    "damage": run_damage,
}


if __name__ == "__main__":
    main()
