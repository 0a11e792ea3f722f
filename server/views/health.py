"""The address /health: whether answers can be stored, for uptime services and the supervisor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask, current_app, jsonify, request
from werkzeug.wrappers import Response as AnyResponse

from server.monitor.figures import SILENT_MS
from server.status.health import Checkup, StorageState

# How long requests have been waiting without one being finished; the server says so.
STALLED = "lore_active.stalled"


def install(app: Flask, clock: Callable[[], int]) -> None:
    """Give the application its address, and every study its checkup."""
    app.extensions["checkups"] = {
        name: Checkup(one.database, clock) for name, one in app.extensions["studies"].items()
    }
    app.add_url_rule("/health", view_func=health)


def health() -> tuple[AnyResponse, int]:
    """Always at once; 503 while answers of some study cannot be stored. Names no study."""
    states = [checkup.state() for checkup in current_app.extensions["checkups"].values()]
    for unopened in current_app.extensions["unopened"].values():
        states.append(StorageState("failed", type(unopened.error), 0.0, None))
    ok = all(one.writer == "ok" for one in states)
    told = {
        "ok": ok,
        "studies": [_told(one) for one in states],
        "stalled_seconds": round(request.environ.get(STALLED, 0.0), 1),
    }
    return jsonify(told), 200 if ok else 503


def _told(state: StorageState) -> dict[str, Any]:
    age = state.heartbeat_seconds
    worker = "unknown" if age is None else "silent" if age * 1000 > SILENT_MS else "alive"
    told: dict[str, Any] = {"writer": state.writer}
    if state.error is not None:
        told |= {"error": state.error.name, "for_seconds": round(state.seconds, 1)}
    return told | {
        "worker": worker,
        "heartbeat_seconds": None if age is None else round(age, 1),
    }
