"""Speed, growth and memory of the fit, beside cblearn's LORE in the same run."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import Page
from lore_active.data.comparisons import as_triplets
from lore_active.embedding import kernels
from lore_active.embedding.fit import fit, random_start
from lore_active.embedding.metrics import triplet_accuracy
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings, solve
from lore_active.simulation.observers import ObserverNoise, gaussian_space, simulated_answers
from lore_active.warmup import warm

# (items, answers, d', true rank): the problems of the comparison.
PROBLEMS = ((50, 5880, 15, 5), (100, 21_000, 15, 3), (448, 118_263, 30, 5))
REFERENCE = {"margin": 1.0, "lamb": 0.01, "mu": 0.1, "tol": 1e-5}
REFERENCE_ITERATIONS = 1000
# Reporting seed; development used seeds below 1,000.
SEED = 3000


def seconds(action: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median time of an action, and its result."""
    times = []
    result = None
    for _ in range(repeats):
        begun = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begun)
    return float(np.median(times)), result


def problem(items: int, count: int, rank: int, seed: int = SEED) -> tuple[Any, Any]:
    space = gaussian_space(items, rank, seed)
    answers = simulated_answers(space, count, seed + 1)
    return answers, simulated_answers(space, 3000, seed + 2, ObserverNoise(noise=0.0))


def objective(embedding: np.ndarray, answers: np.ndarray, items: int) -> float:
    """The objective of any embedding, measured with one and the same function."""
    pairs = as_pairs(as_triplets(answers, items))
    distance, pull = np.empty(len(pairs.first)), np.empty(len(pairs.first))
    kernels.distances(np.ascontiguousarray(embedding), pairs.first, pairs.second, distance)
    loss = kernels.answers(distance, pairs.near, pairs.far, pairs.weight, 1.0, pull)
    scale = np.linalg.svd(embedding, compute_uv=False)
    return float(loss + 0.01 * np.sqrt(scale[scale > 1e-9]).sum())


def beside_reference(page: Page, full: bool) -> None:
    from cblearn.embedding import LORE as Reference  # noqa: N811

    rows = []
    for items, count, columns, rank in PROBLEMS:
        answers, test = problem(items, count, rank)
        start = random_start(items, columns, SEED)
        size = f"N={items} T={count:,} d'={columns}"

        def ours(answers=answers, items=items, columns=columns, start=start) -> Any:
            pairs = as_pairs(as_triplets(answers, items))
            return fit(pairs, SolverSettings(n_components=columns), start)

        own, found = seconds(ours, 5)
        accuracy = triplet_accuracy(found.embedding, test)
        rows.append(
            [
                size,
                "lore-active",
                f"{own:.3f}",
                found.iterations,
                f"{found.objective:.4f}",
                found.rank,
                f"{accuracy:.4f}",
                "1",
            ]
        )
        for backend in ("torch", "scipy"):
            few = 20 if items > 400 and not full else REFERENCE_ITERATIONS
            peer = Reference(
                n_components=columns, backend=backend, max_iter=few, device="cpu", **REFERENCE
            )
            taken, _ = seconds(lambda p=peer, a=answers, s=start: p.fit(a, init=s.copy()), 1)
            scaled = taken * REFERENCE_ITERATIONS / few
            note = "" if few == REFERENCE_ITERATIONS else f" (timed on {few} iterations, scaled)"
            value = objective(peer.embedding_, answers, items)
            peer_accuracy = triplet_accuracy(peer.embedding_, test)
            rows.append(
                [
                    size,
                    f"cblearn {backend}",
                    f"{scaled:.2f}{note}",
                    peer.n_iter_,
                    f"{value:.4f}",
                    peer.rank_,
                    f"{peer_accuracy:.4f}",
                    f"{scaled / own:.0f}",
                ]
            )
            print(rows[-1], flush=True)
    page.text(
        "## Compared with the reference\n\nSame answers (noise variance 0.1), same random start of "
        "standard deviation √5, same process. Ours: validation, grouping, solve and lift, to a "
        "relative stationarity residual of 1e-4, median of 5. Reference: cblearn 0.4.0, margin 1, "
        "λ 0.01, "
        "μ 0.1, tol 1e-5, at most 1,000 iterations. Objectives are measured by one function. "
        "Ratio: the reference's time divided by ours."
    )
    header = ["problem", "solver", "seconds", "iterations", "objective", "rank", "accuracy"]
    page.table([*header, "ratio"], rows)


def slope(x: list[int], y: list[float]) -> float:
    """Exponent of the power law through the points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def growth(page: Page) -> None:
    # So small a penalty that no column dies: each iteration costs the same.
    fixed = SolverSettings(lam=1e-9, max_iter=20)

    def per_iteration(items: int, count: int, columns: int) -> float:
        answers, _ = problem(items, count, 3)
        pairs = as_pairs(as_triplets(answers, items))
        start = random_start(items, columns, SEED)
        return seconds(lambda: solve(pairs, start, fixed), 3)[0] / fixed.max_iter

    counts = [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
    times = [per_iteration(100, count, 15) for count in counts]
    page.text("## Growth\n\nTime of one iteration with 15 active columns.")
    page.table(
        ["answers (N = 100)", "ms per iteration", "ns per iteration and answer"],
        [
            [f"{n:,}", f"{1e3 * t:.3f}", f"{1e9 * t / n:.0f}"]
            for n, t in zip(counts, times, strict=True)
        ],
    )
    late = slope(counts[3:], times[3:])
    page.text(
        f"Exponent in T: {slope(counts, times):.2f} over the whole range, {late:.2f} from "
        f"{counts[3]:,} answers on, where the part that does not depend on T is negligible."
    )
    sizes = [50, 100, 200, 500, 1000, 2000]
    columns = [4, 8, 16, 32]
    by_items = [per_iteration(items, 2000, 15) for items in sizes]
    by_columns = [per_iteration(1000, 2000, width) for width in columns]
    page.table(
        ["items (T = 2,000)", "ms per iteration"],
        [[n, f"{1e3 * t:.3f}"] for n, t in zip(sizes, by_items, strict=True)],
    )
    page.table(
        ["columns d' (N = 1,000, T = 2,000)", "ms per iteration"],
        [[n, f"{1e3 * t:.3f}"] for n, t in zip(columns, by_columns, strict=True)],
    )
    page.text(
        f"Exponent in N: {slope(sizes, by_items):.2f} (linear is 1); "
        f"in d': {slope(columns, by_columns):.2f} (at most 2)."
    )


def warm_refit(page: Page) -> None:
    rows = []
    for seed in range(SEED, SEED + 10):
        answers, _ = problem(100, 5025, 3, seed)
        before = fit(as_pairs(as_triplets(answers[:5000], 100)), SolverSettings())
        cold_time, cold = seconds(
            lambda a=answers: fit(as_pairs(as_triplets(a, 100)), SolverSettings()), 7
        )
        warm_time, warm = seconds(
            lambda a=answers, b=before: fit(
                as_pairs(as_triplets(a, 100)),
                SolverSettings(tolerance=1e-3),
                b.embedding,
                b.curvature,
                certify=False,
            ),
            7,
        )
        rows.append(
            [
                seed,
                f"{1e3 * cold_time:.1f}",
                f"{1e3 * warm_time:.2f}",
                f"1/{cold_time / warm_time:.1f}",
                f"{warm.objective / cold.objective - 1:+.1e}",
            ]
        )
    page.text(
        "## Warm refit\n\nN = 100, a fit of 5,000 answers, then 25 more. Cold: spectral start, "
        "with the rank certificate, tolerance 1e-4. Warm: from the earlier fit, tolerance 1e-3, "
        "certificate kept. "
        "Both include validation and grouping of all answers."
    )
    page.table(["seed", "cold ms", "warm ms", "ratio", "objective relative to cold"], rows)


CHILD = """
import sys
import numpy as np
from benchmarks.speed.fit import peak_kib
from lore_active.warmup import warm
from lore_active.embedding.fit import fit
from lore_active.embedding.pairs import as_pairs
from lore_active.embedding.solver import SolverSettings
from lore_active.data.comparisons import as_triplets
warm()
answers = np.load(sys.argv[1])
items = int(sys.argv[2])
before = peak_kib()
fit(as_pairs(as_triplets(answers, items)), SolverSettings(max_iter=5))
print(peak_kib() - before)
"""


def peak_kib() -> int:
    """Highest resident size of this process so far. (getrusage keeps the parent's across exec.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("This system does not tell a process's peak memory.")


def memory(page: Page) -> None:
    if not Path("/proc/self/status").exists():
        page.text("## Memory\n\nNot measured: this system does not tell a process's peak.")
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.npy"
        for items, count in ((50, 5880), (448, 118_263), (100, 1_000_000), (2000, 1_000_000)):
            answers, _ = problem(items, count, 3)
            np.save(file, answers)
            result = subprocess.run(
                [sys.executable, "-c", CHILD, str(file), str(items)],
                capture_output=True,
                text=True,
                check=True,
            )
            own = answers.nbytes / 2**20
            extra = int(result.stdout) / 2**10
            rows.append([items, f"{count:,}", f"{own:.1f}", f"{extra:.1f}", f"{4 * own + 50:.1f}"])
    page.text(
        "## Memory\n\nIncrease of the process's peak memory by a fit, in MiB, each measured in a "
        "new process."
    )
    page.table(["items", "answers", "answers' own size", "added peak", "4 × own + 50"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="run the slow reference to its end")
    chosen = parser.parse_args()
    warm()
    command = "python -m benchmarks.speed.fit --full" if chosen.full else "make bench-fit"
    page = Page("fit", "Speed of the fit", command)
    with threadpool_limits(1):
        warm_refit(page)
        growth(page)
        memory(page)
    beside_reference(page, chosen.full)
    page.write()


if __name__ == "__main__":
    main()
