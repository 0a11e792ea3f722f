"""Files for other programs: R's tripletTools, Salmon, cblearn.

What each of them reads, and what it makes of it, is in docs/exports.md. Items have one number
everywhere: their place in the study, from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from server.exports.dictionary import adding_up, dictionary, simulated_lines
from server.exports.tables import ANSWERS, ExportOptions, Progress, answer_rows, csv_text, put
from server.monitor.map import embedding_of
from server.status.counting import Fates, answer_counts
from server.store import models, summaries
from server.store.database import Database
from server.study.config import LoadedStudy

TRIPLETTOOLS = (
    *("worker_id", "rt", "Center", "Left", "Right", "Answer"),
    *("sampleAlg", "sampleSet", "head", "winner", "loser", "purpose", "excluded", "simulated"),
)
TRIPLETTOOLS_ITEMS = ("number", "item", "path")
TRIPLETTOOLS_EMBEDDING = ("worker_id", "item", "dim_0 …")
# As that package calls an embedding that is nobody's own.
GROUP = "group"
_ALGORITHMS = {"random": "random", "repeat": "repeat"}
TRIPLETTOOLS_NOTES = (
    "The embedding was fitted to everybody's answers, those of the test set included, so it "
    "predicts these better than new ones.",
    "",
    "Skipped and timed-out trials are left out. `get.participant.summary` finds its check trials "
    "where `sampleAlg` is `check`, and keeps nobody with fewer than 1,000 trials unless `mintrial` "
    "says otherwise.",
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
    database: Database, choice: ExportOptions, progress: Progress
) -> Iterator[list[dict[str, Any]]]:
    """Answers with a choice as named cells, practice left out, some thousand at once.

    `counts` tells whether an answer counts for the model, `waited_ms` how long the server waited
    for it since the participant's answer before.
    """
    fates = database.read(Fates)
    before: dict[int, int] = {}
    for rows in answer_rows(database, choice, progress):
        found = []
        for row in rows:
            one = dict(zip(ANSWERS, row, strict=True))
            who, received = one["participant"], one["received_at_utc"]
            one["waited_ms"] = received - before.get(who, one["asked_at_utc"])
            before[who] = received
            if one["purpose"] != "practice" and one["chosen"] is not None:
                marks = bool(one["excluded"]), bool(one["simulated"])
                one["counts"] = fates.counted(one["seq"], one["purpose"], one["side"], *marks)
                found.append(one)
        yield found


def _counted(database: Database, progress: Progress) -> Iterator[list[dict[str, Any]]]:
    """Answers that count for the model: all that a method without marks may be given."""
    for rows in _rows(database, ExportOptions(), progress):
        yield [one for one in rows if one["counts"]]


def _other(row: dict[str, Any]) -> str:
    return str(row["right"] if row["side"] == "left" else row["left"])


def _numbers(study: LoadedStudy) -> dict[str, int]:
    return {item.key: number for number, item in enumerate(study.items)}


# ---- tripletTools -------------------------------------------------------------------------------


def triplettools(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Trials, the key to its item numbers, and the embedding, as `get.combined` reads them."""
    number = _numbers(study)
    # Questions whose answers are held out; a repeat of one must be, too.
    test: set[int] = set()

    def trials() -> Iterator[str]:
        yield csv_text([TRIPLETTOOLS])
        for rows in _rows(database, choice, progress):
            yield csv_text(_triplettools_row(row, number, test) for row in rows)

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
        f"{stem}.csv": TRIPLETTOOLS,
        f"{stem}_items.csv": TRIPLETTOOLS_ITEMS,
        f"{stem}_embedding.csv": TRIPLETTOOLS_EMBEDDING,
    }
    counts = database.read(answer_counts)
    return [
        put(out / f"{stem}.csv", trials()),
        put(out / f"{stem}_items.csv", items()),
        put(out / f"{stem}_embedding.csv", embedding()),
        dictionary(out / "dictionary.md", columns, counts, TRIPLETTOOLS_NOTES),
    ]


def _triplettools_row(row: dict[str, Any], number: dict[str, int], test: set[int]) -> list[Any]:
    purpose = row["purpose"]
    if purpose == "random" or (purpose == "repeat" and row["repeats_question"] in test):
        test.add(row["question"])
    if purpose == "catch":
        # The package takes a check for passed where the anchor itself was chosen.
        algorithm = "check" if row["anchor"] in (row["left"], row["right"]) else "catch"
    else:
        algorithm = _ALGORITHMS.get(purpose, "adaptive")
    held_out = "test" if row["question"] in test else "train"
    other = _other(row)
    return [
        row["participant"],
        # Of a participant without any time the package could not tell whether to keep them.
        _time(row["rt_ms"], 1.0) or _time(row["waited_ms"], 1.0) or "",
        row["anchor"],
        row["left"],
        row["right"],
        row["chosen"],
        algorithm,
        held_out if row["counts"] else "NA",
        number[row["anchor"]],
        number[row["chosen"]],
        number[other],
        purpose,
        row["excluded"],
        row["simulated"],
    ]


def _time(ms: float | None, unit: float) -> float | None:
    """A time in its unit; None for what is no time: a page may say anything, clocks are set."""
    return ms / unit if ms is not None and isfinite(ms) and ms > 0 else None


# ---- Salmon -------------------------------------------------------------------------------------


def salmon(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Responses as Salmon's dashboard gives them, its targets, and where its fit may start."""
    number, people = _numbers(study), database.read(summaries.people)
    start = min((one.arrived_at for one in people), default=0) / 1000

    def responses() -> Iterator[str]:
        yield csv_text([SALMON])
        so_far: Counter[int] = Counter()
        for rows in _counted(database, progress):
            yield csv_text(_salmon_row(row, number, start, so_far) for row in rows)

    z = embedding_of(database.read(models.latest_model), len(study.items))

    def coordinates() -> Iterator[str]:
        yield csv_text([range(z.shape[1])])
        yield csv_text(map(float, row) for row in z)

    responses_file, targets_file, start_file = (
        out / f"{study.name}_{name}.csv" for name in ("responses", "targets", "embedding")
    )
    notes = (
        f"`{targets_file.name}` has one target per line, as Salmon takes them; the first is target "
        "0.",
        "",
        f"`{start_file.name}` has the coordinates of this study's model for "
        "`OfflineEmbedding.fit(…, embedding=…)`: one row per target, one column per dimension. "
        "There is no such file while the model has no dimensions.",
        "",
        "Only answers that count for the model are here: no practice, catch trials, skipped or "
        "timed-out trials, and no excluded participants.",
    )
    counts = database.read(answer_counts)
    return [
        put(responses_file, responses()),
        put(targets_file, iter([csv_text([item.key] for item in study.items)])),
        *([put(start_file, coordinates())] if z.shape[1] else []),
        dictionary(out / "dictionary.md", {responses_file.name: SALMON}, counts, notes),
    ]


def _salmon_row(
    row: dict[str, Any], number: dict[str, int], start: float, so_far: Counter[int]
) -> Iterator[Any]:
    keys = {
        "head": row["anchor"],
        "left": row["left"],
        "right": row["right"],
        "winner": row["chosen"],
        "loser": _other(row),
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
    }
    return (cells[name] for name in SALMON)


# ---- cblearn ------------------------------------------------------------------------------------


def cblearn(
    database: Database, study: LoadedStudy, out: Path, choice: ExportOptions, progress: Progress
) -> list[Path]:
    """Arrays for cblearn: `triplets` in list order (anchor, nearer, farther), all that count."""
    number = _numbers(study)
    parts: list[np.ndarray[Any, Any]] = []
    for rows in _counted(database, progress):
        found = [
            (
                number[row["anchor"]],
                number[row["chosen"]],
                number[_other(row)],
                row["participant"],
                row["simulated"],
            )
            for row in rows
        ]
        parts.append(np.array(found, dtype=np.int32).reshape(-1, 5))
    held = np.concatenate(parts) if parts else np.zeros((0, 5), dtype=np.int32)
    path = out / f"{study.name}_triplets.npz"
    np.savez(
        path,
        triplets=held[:, :3],
        participant=held[:, 3],
        simulated=held[:, 4],
        items=np.array([item.key for item in study.items]),
    )
    counts = database.read(answer_counts)
    lines = [
        "# Data dictionary",
        "",
        *simulated_lines(counts),
        f"`{path.name}` (NumPy, no pickle):",
        "",
        "- `triplets`: one row an answer: anchor, nearer, farther (cblearn's list order), numbers",
        "  from 0. Only answers that count for the model: no practice, catch trials, skipped or",
        "  timed-out trials, and no excluded participants.",
        "- `participant`: who answered.",
        "- `simulated`: 1 where that is a program of lore-active (a bot), not a person.",
        "- `items`: keys of the items, by number.",
        "",
        *adding_up(counts),
    ]
    dictionary_file = out / "dictionary.md"
    dictionary_file.write_text("\n".join(lines), encoding="utf-8")
    return [path, dictionary_file]
