"""SQL of what the worker publishes: models and decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from server.store import collection
from server.store.database import Connection


@dataclass(frozen=True)
class ModelRow:
    """A published model, as stored."""

    version: int
    step: int
    up_to_seq: int
    answers: int
    audit: int
    rank: int
    lam: float
    temperature: float
    objective: float
    seed: int
    aligned: bytes
    embedding: bytes
    covariance: bytes
    summary: str
    hash: str
    fingerprint: str


@dataclass(frozen=True)
class Published:
    """A published model without its coordinates, with its stopping decision."""

    up_to_seq: int
    answers: int
    audit: int
    rank: int
    lam: float
    summary: str
    settled: int
    message: str


_MODEL = ", ".join(field.name for field in fields(ModelRow))


def overruled(c: Connection) -> bool:
    """Return whether the study was reopened after the stopping rule had settled it."""
    row = c.execute(
        "SELECT settled FROM decisions JOIN steps ON steps.id = decisions.step"
        " WHERE steps.at <= (SELECT MAX(at) FROM events WHERE kind = 'reopen')"
        " ORDER BY decisions.step DESC LIMIT 1"
    ).fetchone()
    return row is not None and bool(row[0])


def add_model(c: Connection, model: ModelRow) -> None:
    """Publish a model."""
    marks = ", ".join("?" for _ in fields(ModelRow))
    values = [getattr(model, field.name) for field in fields(ModelRow)]
    c.execute(f"INSERT INTO models ({_MODEL}) VALUES ({marks})", values)


def latest_model(c: Connection) -> ModelRow | None:
    """Return the newest model, unless it includes simulated answers that no longer count."""
    row = c.execute(
        f"SELECT {_MODEL} FROM models WHERE step > ? ORDER BY version DESC LIMIT 1",
        (last_simulated_step(c),),
    ).fetchone()
    return None if row is None else ModelRow(*row)


def latest_fitted(c: Connection) -> tuple[int, int]:
    """Return (answers in the newest model, seq of the last of them); 0 if there is none."""
    row = c.execute(
        "SELECT answers, up_to_seq FROM models WHERE step > ? ORDER BY version DESC LIMIT 1",
        (last_simulated_step(c),),
    ).fetchone()
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def last_simulated_step(c: Connection) -> int:
    """Return the last step before simulated participants were left out; 0 if they are not."""
    out = collection.simulated_out(c)
    if out is None:
        return 0
    row = c.execute(
        "SELECT id FROM steps WHERE up_to_event < ? ORDER BY id DESC LIMIT 1", (out,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def latest_version(c: Connection) -> int:
    """Return the version of the latest model; 0 if there is none."""
    return int(c.execute("SELECT coalesce(max(version), 0) FROM models").fetchone()[0])


def model_numbered(c: Connection, version: int) -> ModelRow | None:
    """Return the model of this version."""
    row = c.execute(f"SELECT {_MODEL} FROM models WHERE version = ?", (version,)).fetchone()
    return None if row is None else ModelRow(*row)


def coordinates(c: Connection, version: int) -> tuple[int, float, bytes] | None:
    """Return (rank, temperature, embedding) of the model of this version."""
    row = c.execute(
        "SELECT rank, temperature, embedding FROM models WHERE version = ?", (version,)
    ).fetchone()
    return None if row is None else (row[0], row[1], row[2])


def model_of_step(c: Connection, step: int) -> ModelRow | None:
    """Return the model that a step published."""
    row = c.execute(f"SELECT {_MODEL} FROM models WHERE step = ?", (step,)).fetchone()
    return None if row is None else ModelRow(*row)


def published(c: Connection) -> list[Published]:
    """List every model with its decision, in order."""
    rows = c.execute(
        "SELECT up_to_seq, answers, audit, m.rank, lam, summary, settled, message "
        "FROM models m JOIN decisions d ON d.step = m.step ORDER BY version"
    )
    return [Published(*row) for row in rows]


def fingerprints(c: Connection) -> set[str]:
    """Return the fingerprints of all models."""
    return {row[0] for row in c.execute("SELECT DISTINCT fingerprint FROM models")}


def decision_of_step(c: Connection, step: int) -> tuple[bool, bool, int, str, str] | None:
    """Return (stop, settled, rank, message, reasons) of a step's decision."""
    row = c.execute(
        "SELECT stop, settled, rank, message, reasons FROM decisions WHERE step = ?", (step,)
    ).fetchone()
    return None if row is None else (bool(row[0]), bool(row[1]), row[2], row[3], row[4])


def add_decision(
    c: Connection, step: int, stop: bool, settled: bool, rank: int, message: str, reasons: str
) -> None:
    """Store a stopping decision; its reasons as JSON."""
    c.execute(
        "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)",
        (step, int(stop), int(settled), rank, message, reasons),
    )


def for_export(c: Connection) -> Iterator[tuple[int, int, int, int, float, int, str]]:
    """Yield (version, answers, audit, rank, lam, settled, summary) of every model, in order."""
    yield from c.execute(
        "SELECT version, answers, audit, m.rank, lam, coalesce(d.settled, 0), summary "
        "FROM models m LEFT JOIN decisions d ON d.step = m.step ORDER BY version"
    )


def rule_in_use(c: Connection) -> tuple[str | None, list[dict[str, Any]]]:
    """Name of the newest model's stopping rule, if it was stored, and its criteria as stored."""
    model = c.execute(
        "SELECT summary ->> '$.rule' FROM models ORDER BY version DESC LIMIT 1"
    ).fetchone()
    decision = c.execute("SELECT reasons FROM decisions ORDER BY step DESC LIMIT 1").fetchone()
    return None if model is None else model[0], [] if decision is None else json.loads(decision[0])
