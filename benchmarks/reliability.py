"""Five hundred kills under load: nothing acknowledged may be lost or doubled."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.killing import kill_cycles
from benchmarks.serving import words_study
from benchmarks.tables import FOLDER, Page

STORE = FOLDER.parent.parent / "build" / "reliability.jsonl"


def main() -> None:
    """Run what is missing in rounds of kills, each on a fresh study; then write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--round", type=int, default=50)
    chosen = parser.parse_args()
    STORE.parent.mkdir(exist_ok=True)
    done = [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []
    while sum(one["cycles"] for one in done) < chosen.cycles:
        with tempfile.TemporaryDirectory() as home:
            folder = words_study(Path(home) / "words", 30)
            damage = kill_cycles(folder, chosen.round, 8, lambda say: print(say, file=sys.stderr))
        done.append({"cycles": chosen.round, **asdict(damage)})
        with STORE.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    page = Page("reliability", "Kills under load", "make bench-reliability")
    page.text(
        "Eight clients answer as fast as they can while the web process, the worker, or both are "
        "killed with SIGKILL; the supervisor starts them again. Afterwards every acknowledged "
        "answer is looked for in the database."
    )
    names = ("cycles", "kills", "acknowledged", "lost", "doubled", "refused")
    rows: list[list[object]] = [[name, sum(one[name] for one in done)] for name in names]
    rows.append(["integrity check", ", ".join(sorted({one["integrity"] for one in done}))])
    rebuilt = sum(one["rebuilt"] for one in done)
    rows.append(["rebuilt to the published hash", f"{rebuilt} of {len(done)}"])
    page.table(["", "total"], rows)
    page.write()


if __name__ == "__main__":
    main()
