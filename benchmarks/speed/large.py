"""Large sets: one fit, λ chosen on held-out answers, selection, and a long study.

The fit is compared with the commit before large sets were made fast, in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from benchmarks.tables import Page
from lore_active.acquisition import selectors
from lore_active.acquisition.candidates import Candidates, Gradients
from lore_active.acquisition.selectors import FisherSelector, UncertaintySelector
from lore_active.acquisition.state import SelectorState
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import map as map_embedding
from lore_active.embedding.pairs import as_pairs
from lore_active.learner.cadence import AUDIT_GROWTH
from lore_active.learner.learner import Learner
from lore_active.questions.pool import AllQuestions
from lore_active.simulation.observers import gaussian_space, simulated_answers
from lore_active.warmup import warm

ROOT = Path(__file__).parents[2]
BEFORE = "9029592"
ITEMS, RANK, COMPONENTS = 1854, 10, 50
ANSWERS = int(os.environ.get("ANSWERS", "4700000"))
SPACE_SEED, ANSWER_SEED, TEST_SEED = 900, 901, 902

# Runs in a process of its own, with the code of either commit.
FIT = """
import json, resource, sys, time, warnings
import lore_active, numpy as np
from lore_active import as_triplets
from lore_active.warmup import warm
warnings.simplefilter("ignore")
warm()
rows, test = np.load(sys.argv[1]), np.load(sys.argv[2])
begun, cpu = time.perf_counter(), time.process_time()
model = {model}.fit(rows, n_objects={items})
seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
print(json.dumps(dict(
    seconds=seconds, cpu=cpu, rank=model.rank_, objective=model.objective_,
    lam=getattr(model, "lam_", 0.01), accuracy=model.score(test),
    megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
)))
"""
SIMULATE = """
import sys
import lore_active, numpy as np
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers
space = gaussian_space({items}, {rank}, {space_seed})
np.save(sys.argv[1], simulated_answers(space, {answers}, {answer_seed}).astype(np.int32))
test = simulated_answers(space, 200_000, {test_seed}, ObserverNoise(noise=0.0))
np.save(sys.argv[2], test.astype(np.int32))
"""
LORE = f"lore_active.LORE(n_components={COMPONENTS}, lam=0.01)"
LORECV = "lore_active.LORECV()"


def run(code: str, tree: Path, *arguments: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def fits(page: Page) -> None:
    with tempfile.TemporaryDirectory(prefix="lore-active-") as home:
        answers, test, old = Path(home) / "a.npy", Path(home) / "t.npy", Path(home) / "old"
        old.mkdir()
        archive = subprocess.run(
            ["git", "archive", BEFORE, "lore_active"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        subprocess.run(["tar", "-x", "-C", str(old)], input=archive.stdout, check=True)
        run(
            SIMULATE.format(
                items=ITEMS,
                rank=RANK,
                answers=ANSWERS,
                space_seed=SPACE_SEED,
                answer_seed=ANSWER_SEED,
                test_seed=TEST_SEED,
            ),
            ROOT,
            answers,
            test,
        )
        rows = []
        for name, tree, model in (
            ("`LORE`, λ = 0.01", ROOT, LORE),
            (f"`LORE`, λ = 0.01, before ({BEFORE})", old, LORE),
            ("`LORE`, λ = 0.01, again", ROOT, LORE),
            ("`LORECV`", ROOT, LORECV),
        ):
            report = json.loads(run(FIT.format(model=model, items=ITEMS), tree, answers, test))
            rows.append(
                [
                    name,
                    f"{report['cpu']:.1f}",
                    f"{report['seconds']:.0f}",
                    f"{report['objective']:.6f}",
                    f"{report['megabytes']:.0f}",
                    f"{report['lam']:g}",
                    report["rank"],
                    f"{100 * report['accuracy']:.1f}",
                ]
            )
            print(rows[-1], flush=True)
    page.text(
        f"## One fit\n\n{ITEMS:,} items, {ANSWERS:,} random questions, noise 0.1, true "
        f"rank {RANK}, up to {COMPONENTS} dimensions, one thread, each in a process of its own. "
        "Processor and elapsed seconds from the array of answers to the fitted estimator (other "
        "programs were running); the objective that was reached; peak memory of the process "
        "(megabytes) with that array; accuracy (%) on 200,000 further questions without noise. "
        "`LORECV` chooses λ and the rank on held-out answers."
    )
    page.table(
        ["fit", "processor, s", "elapsed, s", "objective", "memory", "λ", "rank", "accuracy"], rows
    )


def state_of(items: int, rank: int, answers: int) -> SelectorState:
    """A fitted acquisition model, as a selector gets it."""
    rows = simulated_answers(gaussian_space(items, rank, SPACE_SEED), answers, ANSWER_SEED)
    pairs = as_pairs(as_triplets(rows, items))
    z = map_embedding.fits_by_rank(pairs, answers, 0.1, rank, final=False, min_rank=rank)[rank][0]
    none = np.empty((0, 3), dtype=np.int64)
    return SelectorState(z, 1.0, rows, none, set(), AllQuestions(items))


def reference_scores(state: SelectorState, rows: np.ndarray) -> np.ndarray:
    """Scores of candidates with the full covariance and many targets that no selector has seen."""
    covariance = selectors.coordinate_covariance(state)
    targets = selectors.draw(state.n_objects, 4000, np.random.default_rng(3))
    asked = Gradients(state.embedding, targets)
    weights = selectors.target_weights(asked.margins, asked.variances(covariance))
    images = asked.through(covariance) * np.sqrt(weights / 4000)[:, np.newaxis]
    images = np.ascontiguousarray(images.T)
    return Candidates(state.embedding, covariance, images, rows, state.temperature).scores()


def quality(page: Page) -> None:
    table = []
    for items, rank, per_item in (
        (60, 2, 8),
        (60, 2, 20),
        (100, 3, 10),
        (100, 3, 30),
        (200, 3, 10),
        (200, 5, 25),
        (400, 5, 15),
    ):
        state = state_of(items, rank, items * per_item)
        rows = state.source.new(selectors.POOL, state.taken, np.random.default_rng(1))
        reference = reference_scores(state, rows)
        scores = {}
        for name, limit in (("full", 10**9), ("blocks", 0)):
            selectors.MAX_EXACT = limit
            # The same generator draws the same candidates first.
            candidates = FisherSelector()._candidates(state, np.random.default_rng(1))
            assert (candidates.rows == rows).all()
            scores[name] = candidates.scores()
        near, far = (
            np.linalg.norm(state.embedding[rows[:, 0]] - state.embedding[rows[:, k]], axis=1)
            for k in (1, 2)
        )
        scores["uncertainty"] = -np.abs(far - near)

        def gain(values: np.ndarray, reference: np.ndarray = reference) -> float:
            best = np.argsort(-values, kind="stable")[:40]
            return float(reference[best].mean() / reference.mean())

        table.append(
            [
                items,
                rank,
                per_item,
                f"{gain(reference):.2f}",
                *(
                    f"{gain(values):.2f} ({spearmanr(reference, values)[0]:.2f})"
                    for values in scores.values()
                ),
            ]
        )
        print(table[-1], flush=True)
    selectors.MAX_EXACT = 1000
    page.text(
        "## Quality of the selection\n\nMean score of the 40 best of 4,000 candidates, relative to "
        "the mean of all, and in brackets the rank correlation of all scores. What is judged are "
        "scores with the full covariance and 4,000 targets that no selector has seen; *best* "
        "selects by these. *Full*: the full covariance and 200 targets (up to 1,000 coordinates). "
        "*Blocks*: one covariance for each item and ten targets per item (above). *Uncertainty*: "
        "the smallest absolute margin (above 4,000 coordinates before)."
    )
    page.table(
        ["items", "rank", "answers per item", "best", "full", "blocks", "uncertainty"], table
    )


def speed(page: Page) -> None:
    table = []
    for items, rank, answers in ((500, 5, 100_000), (1854, 5, 20_000), (1854, 11, 300_000)):
        rows = simulated_answers(gaussian_space(items, rank, SPACE_SEED), answers, ANSWER_SEED)
        space = np.ascontiguousarray(3.0 * gaussian_space(items, rank, SPACE_SEED))
        none = np.empty((0, 3), dtype=np.int64)
        state = SelectorState(space, 1.0, rows, none, set(), AllQuestions(items))
        cells = []
        for selector in (FisherSelector(), UncertaintySelector()):
            spent = seconds(
                lambda selector=selector, state=state: [
                    selector.pick(state, 20, np.random.default_rng(seed)) for seed in range(3)
                ]
            )
            cells.append(f"{spent / 3:.3f}")
        table.append([items, rank, f"{answers:,}", *cells])
        print(table[-1], flush=True)
    page.text("## Speed of the selection\n\nSeconds of processor time for 20 questions.")
    page.table(["items", "rank", "answers", "`fisher`", "`uncertainty`"], table)


def study(page: Page) -> None:
    table, audits = [], {}
    for items, rank, answers in (
        (500, 3, 3_000),
        (500, 3, 10_000),
        (500, 3, 30_000),
        (500, 3, 100_000),
        (ITEMS, 3, 30_000),
    ):
        new = answers // 100
        space = gaussian_space(items, rank, SPACE_SEED)
        rows = simulated_answers(space, answers + new, ANSWER_SEED)
        learner = Learner(items, seed=5)
        learner.add(rows[:answers])
        audit = seconds(learner.audit)
        learner.add(rows[answers:])
        refit = seconds(learner.refit)
        select = seconds(lambda learner=learner: learner.ask(20, pending=[]))
        if items == 500:
            audits[answers] = audit
        cells = [f"{audit:.1f}", f"{refit:.2f}", f"{select:.2f}"]
        table.append([items, f"{answers:,}", learner.estimate.rank, *cells])
        print(table[-1], flush=True)
    counts = 1000 * AUDIT_GROWTH ** np.arange(int(np.log(100) / np.log(AUDIT_GROWTH)) + 1)
    total = np.exp(
        np.interp(np.log(counts), np.log(list(audits)), np.log(list(audits.values())))
    ).sum()
    page.text(
        "## A long study\n\nTrue rank 3, seconds of processor time. A refit comes after every "
        "hundredth more answers. The audits of a study of 500 items up to 100,000 answers, one "
        f"after every 8 % more, take about {total:.0f} s together, that is "
        f"{100 * total / 20_000:.1f} % of the worker's time at five answers per second; "
        "all are spaced so that they take at most a quarter of it."
    )
    page.table(["items", "answers", "rank", "audit", "refit", "20 questions"], table)


def seconds(action: Callable[[], object]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun


def main() -> None:
    warm()
    page = Page("large", "Large sets", "make bench-large")
    sections = {"quality": quality, "speed": speed, "study": study, "fits": fits}
    with threadpool_limits(1):
        for name in os.environ.get("SECTIONS", ",".join(sections)).split(","):
            sections[name](page)
    page.keep_others()
    page.write()


if __name__ == "__main__":
    main()
