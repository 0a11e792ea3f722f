"""The command `lore-active fit`: answers in a file, their embedding out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lore_active.estimator import LORE, unseen_items
from lore_active.formats import read_table, write_embedding
from lore_active.progress import say
from lore_active.tables import simulated_note
from lore_active.triplets import as_triplets
from lore_active.warming import warm


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--items", type=int, help="Number of items; the highest number that occurs if not given."
)
@click.option(
    "--lam", type=float, default=0.01, show_default=True, help="Weight of the rank penalty."
)
@click.option(
    "--components", type=int, default=15, show_default=True, help="Most dimensions considered."
)
@click.option(
    "--seed",
    type=int,
    help="Start from random coordinates of this seed; spectral start if not given.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="Include answers of simulated participants (bots), which are left out otherwise.",
)
@click.option("--trim", is_flag=True, help="Also try to do without the weakest dimension.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for embedding.csv and fit.json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def fit(
    file: Path,
    items: int | None,
    lam: float,
    components: int,
    seed: int | None,
    simulated: bool,
    trim: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit the answers in FILE (CSV, .npy or .npz; rows anchor, nearer, farther)."""
    table = read_table(file, simulated)
    triplets = as_triplets(table, items)
    say("Compiling or loading kernels …")
    warm()
    say(f"Fitting {len(triplets)} answers about {triplets.n_objects} items …")
    begun = time.perf_counter()
    model = LORE(n_components=components, lam=lam, random_state=seed, trim=trim).fit(triplets)
    seconds = time.perf_counter() - begun
    result = {
        "n_objects": triplets.n_objects,
        "n_triplets": len(triplets),
        "rank": model.rank_,
        "lambda": lam,
        "objective": model.objective_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "train_accuracy": model.score(triplets),
        "seconds": seconds,
        "set_aside": table.set_aside,
        "simulated_left_out": table.simulated_left_out,
        "unseen": triplets.unseen.tolist(),
        "singular_values": model.singular_values_[: model.rank_].tolist(),
    }
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_embedding(out / "embedding.csv", model.embedding_[:, : model.rank_], triplets.labels)
        (out / "fit.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result))
        return
    _print_fit(result, unseen_items(triplets), out, click.echo)


def _print_fit(
    result: dict[str, Any], note: str, out: Path | None, echo: Callable[[str], None]
) -> None:
    if result["rank"] == 0:
        echo(f"No dimension pays at lambda {result['lambda']:g}: rank 0. Try a smaller --lam.")
    else:
        many = "dimension" if result["rank"] == 1 else "dimensions"
        values = ", ".join(f"{value:.3g}" for value in result["singular_values"])
        echo(f"{result['rank']} {many} (singular values {values})")
    echo(
        f"{result['n_triplets']} answers about {result['n_objects']} items; the embedding agrees "
        f"with {100 * result['train_accuracy']:.1f} % of them"
    )
    if result["set_aside"]:
        rows = "row was" if result["set_aside"] == 1 else "rows were"
        echo(f"{result['set_aside']} {rows} set aside (practice, checks, skipped, excluded)")
    if left_out := simulated_note(result["simulated_left_out"]):
        echo(left_out)
    state = "converged" if result["converged"] else "NOT converged"
    echo(
        f"objective {result['objective']:.6f}, {state} after {result['iterations']} iterations, "
        f"{result['seconds']:.3f} s"
    )
    if note:
        echo(note)
    if out is not None:
        echo(f"written: {out / 'embedding.csv'}, {out / 'fit.json'}")
