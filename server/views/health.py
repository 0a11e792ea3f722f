"""The endpoint /health: whether answers can be stored, for uptime monitors and the supervisor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask, current_app, jsonify, request
from werkzeug.wrappers import Response as AnyResponse

from server.monitor.figures import SILENT_MS
from server.status.health import Checkup, StorageState

# WSGI key, set by the server: for how long requests have been waiting without any being finished.
STALLED = "lore_active.stalled"


def install(app: Flask, clock: Callable[[], int]) -> None:
    """Register /health, and a checkup for every study."""
    studies = app.extensions["studies"]
    app.extensions["checkups"] = {
        name: Checkup(served.database, clock) for name, served in studies.items()
    }
    app.add_url_rule("/health", view_func=health)


def health() -> tuple[AnyResponse, int]:
    """Report health without delay; 503 while any study cannot store answers. Names no study."""
    states = [checkup.state() for checkup in current_app.extensions["checkups"].values()]
    for unopened in current_app.extensions["unopened"].values():
        states.append(StorageState("failed", type(unopened.error), 0.0, None))
    ok = all(state.writer == "ok" for state in states)
    report = {
        "ok": ok,
        "studies": [_study_report(state) for state in states],
        "stalled_seconds": round(request.environ.get(STALLED, 0.0), 1),
    }
    return jsonify(report), 200 if ok else 503


def _study_report(state: StorageState) -> dict[str, Any]:
    age = state.heartbeat_seconds
    worker = "unknown" if age is None else "silent" if age * 1000 > SILENT_MS else "alive"
    report: dict[str, Any] = {"writer": state.writer}
    if state.error is not None:
        report |= {"error": state.error.name, "for_seconds": round(state.seconds, 1)}
    return report | {
        "worker": worker,
        "heartbeat_seconds": None if age is None else round(age, 1),
    }
