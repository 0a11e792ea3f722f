"""LORE beside cblearn's methods on real answers (Materials), as `lore-active compare` does it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.materials import ITEMS, MATERIALS, majority, read_materials
from benchmarks.tables import FOLDER, Page
from lore_active.data.comparisons import as_triplets
from lore_active.simulation.baselines import METHODS
from server.comparison import drawing
from server.comparison.run import FoldResult, Result, compare, verdict

STORE = Path(__file__).parents[2] / "build" / "comparing.jsonl"
SEED = 7000
# Held-out accuracy in % and rank on Materials in the LORE paper.
PAPER = {
    "lore": (84.08, 2.23),
    "soe": (81.86, 15),
    "ckl": (83.94, 15),
    "t-ste": (83.44, 15),
    "forte": (79.35, 15),
    "dim-cv": (78.10, 1),
}


def stored() -> dict[str, Result]:
    """What was measured before, by method."""
    found = {}
    for line in STORE.read_text().splitlines() if STORE.exists() else []:
        one = json.loads(line)
        one["folds"] = tuple(FoldResult(**fold) for fold in one["folds"])
        found[one["method"]] = Result(
            **{name: one[name] for name in ("method", "name", "status", "message", "folds")}
        )
    return found


def report(results: list[Result], folds: int, limit: float, asked: int) -> None:
    page = Page("compare", "LORE and other methods: Materials", "make bench-compare")
    page.text(
        f"Human answers about 100 materials, the majority answer of {asked:,} questions (ties: "
        f"the first listed), {folds} folds, seed {SEED}, one core, at most {limit:g} s for "
        "a method. Methods that do not estimate the dimensionality are given 15, as in the LORE "
        "paper; cblearn "
        "0.4.0 with its defaults. The paper held out 10 % at random; the figures of its table are "
        "in the last column."
    )
    page.table(
        ["method", "accuracy, %", "rank", "seconds per fit", "note", "paper"],
        [
            [
                one.name,
                drawing.percent(one),
                drawing.rank(one),
                drawing.seconds(one),
                drawing.note(one, folds),
                "{:.2f}, rank {:g}".format(*PAPER[one.method]) if one.method in PAPER else "",
            ]
            for one in drawing.ordered(results)
        ],
    )
    outcome, known = verdict(results), {result.method: result for result in results}
    best, simplest = known[outcome["best"]], known[outcome["simplest"]]
    behind = {
        result.method: 100 * ((best.accuracy or 0.0) - result.accuracy)
        for result in results
        if result.accuracy is not None
    }
    page.text(
        f"Most accurate: {best.name}. LORE with the paper's λ is {behind['lore']:.2f} points "
        f"behind it, LORE with cross-validated rank and λ {behind['lore-cv']:.2f}. Of the methods "
        f"within one point of the best, {simplest.name} has the lowest rank "
        f"({drawing.rank(simplest)})."
    )
    apart = [
        f"{known[key].name} {100 * share - PAPER[key][0]:+.1f}"
        for key in PAPER
        if key in known
        and (share := known[key].accuracy) is not None
        and abs(100 * share - PAPER[key][0]) > 1
    ]
    if apart:
        page.text(f"Differences from the paper of more than one point: {', '.join(apart)}.")
    page.text("![Accuracy, rank and seconds of each method](compare.svg)")
    chart = drawing.svg(results, folds, "Methods compared on Materials")
    (FOLDER / "compare.svg").write_text(chart, encoding="utf-8")
    page.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1800.0, help="limit for each method")
    parser.add_argument("--data", type=Path, default=MATERIALS, help="materials.csv.gz")
    parser.add_argument("--report", action="store_true", help="only write the page")
    given = parser.parse_args()
    if not given.data.exists():
        print("Not measured: the data file is not on this machine.")
        return
    answers = as_triplets(majority(read_materials("train", given.data), ties=True), ITEMS)
    STORE.parent.mkdir(exist_ok=True)
    done = stored()
    for method in () if given.report else METHODS.values():
        if method.key in done:
            continue
        (one,) = compare(
            answers,
            [method],
            given.folds,
            given.seconds,
            15,
            SEED,
            lambda name, number, of: print(f"{name}: {number} of {of} folds", flush=True),
        )
        done[method.key] = one
        with STORE.open("a") as stream:
            stream.write(json.dumps(one.figures()) + "\n")
    report(list(done.values()), given.folds, given.seconds, len(answers))


if __name__ == "__main__":
    main()
