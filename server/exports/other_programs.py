"""Files for other programs: tripletTools (R), Salmon, cblearn.

docs/exports.md describes what each of them reads. Items have the same number everywhere: their
index in the study, from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from lore_active.questions.kinds import TRIPLET
from server.exports.answers import answer_records, comparisons
from server.exports.dictionary import adding_up, dictionary, simulated_lines
from server.exports.tables import ExportOptions, Progress, csv_text, put
from server.monitor.map import embedding_of
from server.status.counting import answer_counts
from server.store import models, summaries
from server.store.database import Database
from server.study.config import LoadedStudy

TRIPLETTOOLS = (
    *("worker_id", "rt", "Center", "Left", "Right", "Answer"),
    *("sampleAlg", "sampleSet", "head", "winner", "loser", "purpose", "excluded", "simulated"),
)
TRIPLETTOOLS_ITEMS = ("number", "item", "path")
TRIPLETTOOLS_EMBEDDING = ("worker_id", "item", "dim_0 …")
# The package's name for an embedding of all participants.
GROUP = "group"
_ALGORITHMS = {"random": "random", "repeat": "repeat"}
TRIPLETTOOLS_NOTES = (
    "The embedding was fitted to the answers of all participants, including the test set, so it "
    "predicts these better than new ones.",
    "",
    "Skipped and timed-out trials are left out. For `get.participant.summary`, check trials have "
    "`sampleAlg` `check`; it drops participants with fewer than 1,000 trials unless `mintrial` is "
    "set.",
)

# Where answers have several comparisons.
COMPARISONS_NOTES = (
    "An answer is several rows, one for each of its comparisons, with the same `trial`. The item "
    "that is nearer to the anchor is in the place of the option chosen, and left and right are in "
    "the order in which the two were shown.",
    "",
)

_ROLES = ("left", "right", "head", "winner", "loser")
SALMON = (
    *("head", "left", "right", "winner", "loser", "sampler", "score", "puid"),
    *("response_time", "network_latency", "time_received"),
    *(f"{role}_html" for role in _ROLES),
    *(f"{role}_filename" for role in _ROLES),
    *("time_received_since_start", "datetime_received", "start_time"),
    *("puid_num_responses", "num_responses", "simulated"),
)


def _rows(
    database: Database, study: LoadedStudy, choice: ExportOptions, progress: Progress
) -> Iterator[list[dict[str, Any]]]:
    """Yield the comparisons of answers with a choice, without practice, of a few thousand at once.

    Each is a copy of its answer with its own `anchor`, `left` and `right` (in the order of
    display), `nearer` and `farther`. `counts` says whether the model uses an answer, `waited_ms`
    the time since the participant's previous answer, by the server's clock.
    """
    before: dict[int, int] = {}
    for records in answer_records(database, study, choice, progress):
        rows = []
        for answer in records:
            participant, received = answer["participant"], answer["received_at_utc"]
            answer["waited_ms"] = received - before.get(participant, answer["asked_at_utc"])
            before[participant] = received
            if answer["purpose"] == "practice" or not answer["chosen"]:
                continue
            shown = (*answer["options"], answer["anchor"])
            answer["check"] = len(set(shown)) < len(shown)
            for anchor, nearer, farther in comparisons(answer, study.kind):
                options = sorted((nearer, farther), key=answer["options"].index)
                row = {"anchor": anchor, "nearer": nearer, "farther": farther}
                row |= {"left": options[0], "right": options[1]}
                rows.append({**answer, **row})
        yield rows


def _counted(
    database: Database, study: LoadedStudy, progress: Progress
) -> Iterator[list[dict[str, Any]]]:
    """Yield comparisons that the model uses, for formats without a column to mark others."""
    for rows in _rows(database, study, ExportOptions(), progress):
        yield [row for row in rows if row["counts"]]


def _with_trial(columns: tuple[str, ...], study: LoadedStudy) -> tuple[str, ...]:
    """These columns and, where answers have several comparisons, the trial of each."""
    return columns if study.kind == TRIPLET else (*columns, "trial")


def _notes(notes: tuple[str, ...], study: LoadedStudy) -> tuple[str, ...]:
    """These notes and, where answers have several comparisons, what a row is."""
    return notes if study.kind == TRIPLET else (*COMPARISONS_NOTES, *notes)


def _numbers(study: LoadedStudy) -> dict[str, int]:
    return {item.key: number for number, item in enumerate(study.items)}


# ---- tripletTools -------------------------------------------------------------------------------


def triplettools(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Write trials, item numbers and the embedding, as `get.combined` reads them."""
    number = _numbers(study)
    # Questions in the test set, which also includes their repeats.
    test: set[int] = set()
    trial_columns = _with_trial(TRIPLETTOOLS, study)

    def trials() -> Iterator[str]:
        yield csv_text([trial_columns])
        for rows in _rows(database, study, choice, progress):
            yield csv_text(
                _triplettools_row(row, number, test, study.kind != TRIPLET) for row in rows
            )

    def items() -> Iterator[str]:
        yield csv_text([TRIPLETTOOLS_ITEMS])
        yield csv_text(
            (at, item.key, item.file.name if item.file else "")
            for at, item in enumerate(study.items)
        )

    def embedding() -> Iterator[str]:
        z = embedding_of(database.read(models.latest_model), len(study.items))
        yield csv_text([["worker_id", "item", *(f"dim_{k}" for k in range(z.shape[1]))]])
        yield csv_text(
            [GROUP, item.key, *map(float, row)] for item, row in zip(study.items, z, strict=True)
        )

    stem = f"{study.name}_triplettools"
    columns = {
        f"{stem}.csv": trial_columns,
        f"{stem}_items.csv": TRIPLETTOOLS_ITEMS,
        f"{stem}_embedding.csv": TRIPLETTOOLS_EMBEDDING,
    }
    counts = database.read(answer_counts)
    return [
        put(out / f"{stem}.csv", trials()),
        put(out / f"{stem}_items.csv", items()),
        put(out / f"{stem}_embedding.csv", embedding()),
        dictionary(out / "dictionary.md", columns, counts, _notes(TRIPLETTOOLS_NOTES, study)),
    ]


def _triplettools_row(
    row: dict[str, Any], number: dict[str, int], test: set[int], of_trials: bool
) -> list[Any]:
    purpose = row["purpose"]
    if purpose == "random" or (purpose == "repeat" and row["repeats_question"] in test):
        test.add(row["question"])
    if purpose == "catch":
        # For the package, a check is passed if the anchor itself was chosen.
        algorithm = "check" if row["check"] else "catch"
    else:
        algorithm = _ALGORITHMS.get(purpose, "adaptive")
    held_out = "test" if row["question"] in test else "train"
    return [
        row["participant"],
        # The package cannot judge participants without any response time.
        _time(row["rt_ms"], 1.0) or _time(row["waited_ms"], 1.0) or "",
        row["anchor"],
        row["left"],
        row["right"],
        row["nearer"],
        algorithm,
        held_out if row["counts"] else "NA",
        number[row["anchor"]],
        number[row["nearer"]],
        number[row["farther"]],
        purpose,
        row["excluded"],
        row["simulated"],
        *([row["seq"]] if of_trials else []),
    ]


def _time(ms: float | None, unit: float) -> float | None:
    """Convert a time; None if it is not valid, since pages and clocks can be wrong."""
    return ms / unit if ms is not None and isfinite(ms) and ms > 0 else None


# ---- Salmon -------------------------------------------------------------------------------------


def salmon(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Write responses as in Salmon's dashboard, its targets, and an initial embedding."""
    number, participants = _numbers(study), database.read(summaries.participants)
    start = min((participant.arrived_at for participant in participants), default=0) / 1000

    columns = _with_trial(SALMON, study)

    def responses() -> Iterator[str]:
        yield csv_text([columns])
        so_far: Counter[int] = Counter()
        for rows in _counted(database, study, progress):
            yield csv_text(_salmon_row(row, number, start, so_far, columns) for row in rows)

    z = embedding_of(database.read(models.latest_model), len(study.items))

    def coordinates() -> Iterator[str]:
        yield csv_text([range(z.shape[1])])
        yield csv_text(map(float, row) for row in z)

    responses_file, targets_file, start_file = (
        out / f"{study.name}_{name}.csv" for name in ("responses", "targets", "embedding")
    )
    notes = (
        "`left` and `right` are numbers of items, like `head`.",
        "",
        f"`{targets_file.name}` has one target per line, as Salmon reads them; the first is target "
        "0.",
        "",
        f"`{start_file.name}` has the coordinates of this study's model for "
        "`OfflineEmbedding.fit(…, embedding=…)`: one row per target, one column per dimension. "
        "The file is omitted while the model has no dimensions.",
        "",
        "Only answers that the model uses are included: no practice, catch trials, skipped or "
        "timed-out trials, and no excluded participants.",
    )
    counts = database.read(answer_counts)
    return [
        put(responses_file, responses()),
        put(targets_file, iter([csv_text([item.key] for item in study.items)])),
        *([put(start_file, coordinates())] if z.shape[1] else []),
        dictionary(
            out / "dictionary.md", {responses_file.name: columns}, counts, _notes(notes, study)
        ),
    ]


def _salmon_row(
    row: dict[str, Any],
    number: dict[str, int],
    start: float,
    so_far: Counter[int],
    columns: tuple[str, ...],
) -> Iterator[Any]:
    keys = {
        "head": row["anchor"],
        "left": row["left"],
        "right": row["right"],
        "winner": row["nearer"],
        "loser": row["farther"],
    }
    received = row["received_at_utc"] / 1000
    so_far[row["participant"]] += 1
    cells: dict[str, Any] = {
        **{role: number[key] for role, key in keys.items()},
        "sampler": row["purpose"],
        "score": 0,
        "puid": row["participant"],
        "response_time": _time(row["rt_ms"], 1000.0) or -1,
        "network_latency": -1,
        "time_received": f"{received:.3f}",
        **{f"{role}_{form}": key for role, key in keys.items() for form in ("html", "filename")},
        "time_received_since_start": f"{received - start:.3f}",
        "datetime_received": datetime.fromtimestamp(received, UTC).replace(tzinfo=None).isoformat(),
        "start_time": f"{start:.3f}",
        "puid_num_responses": so_far[row["participant"]],
        "num_responses": so_far.total(),
        "simulated": row["simulated"],
        "trial": row["seq"],
    }
    return (cells[name] for name in columns)


# ---- cblearn ------------------------------------------------------------------------------------


def cblearn(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Write arrays for cblearn: `triplets` in list order (anchor, nearer, farther)."""
    number = _numbers(study)
    parts: list[np.ndarray[Any, Any]] = []
    for rows in _counted(database, study, progress):
        numbers = [
            (
                *(number[row[name]] for name in ("anchor", "nearer", "farther")),
                *(row["participant"], row["simulated"], row["seq"]),
            )
            for row in rows
        ]
        parts.append(np.array(numbers, dtype=np.int32).reshape(-1, 6))
    table = np.concatenate(parts) if parts else np.zeros((0, 6), dtype=np.int32)
    several = study.kind != TRIPLET
    path = out / f"{study.name}_triplets.npz"
    arrays = {
        "triplets": table[:, :3],
        "participant": table[:, 3],
        "simulated": table[:, 4],
        "items": np.array([item.key for item in study.items]),
    }
    if several:
        arrays["trial"] = table[:, 5]
    np.savez(path, **arrays)  # type: ignore[arg-type]
    counts = database.read(answer_counts)
    lines = [
        "# Data dictionary",
        "",
        *simulated_lines(counts),
        f"`{path.name}` (NumPy, no pickle):",
        "",
        f"- `triplets`: one row per {'comparison' if several else 'answer'}: anchor, nearer,",
        "  farther (cblearn's list order), numbers from 0. Only answers that the model uses: no",
        "  practice, catch trials, skipped or timed-out trials, and no excluded participants.",
        "- `participant`: number of the participant.",
        *(["- `trial`: number of the answer that the comparison belongs to."] if several else []),
        "- `simulated`: 1 if that participant is simulated (a bot).",
        "- `items`: keys of the items, by number.",
        "",
        *adding_up(counts),
    ]
    dictionary_file = out / "dictionary.md"
    dictionary_file.write_text("\n".join(lines), encoding="utf-8")
    return [path, dictionary_file]
