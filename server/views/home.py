"""The server's start page: the listed studies and their states."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Flask, current_app, render_template, request

from server.status.contents import openness
from server.store import collection
from server.store.sqlite.errors import StoreError
from server.study.config import LoadedStudy

LABELS = {
    "open": "open",
    "paused": "paused",
    "stopped": "closed",
    "full": "full",
    "error": "technical problem",
}
PILLS = {"open": "running", "paused": "paused", "error": "paused"}


@dataclass(frozen=True)
class Listed:
    """A study on the start page; `rehearsal` if its answers do not count as data."""

    study: LoadedStudy
    state: str
    rehearsal: bool

    @property
    def label(self) -> str:
        """The state as visitors read it."""
        return LABELS[self.state]

    @property
    def pill(self) -> str:
        """CSS class of the state's label."""
        return PILLS.get(self.state, "stopped")


def install(app: Flask, clock: Callable[[], int]) -> None:
    """Register the start page."""

    @app.get("/")
    def home() -> str:
        """The start page: the studies that are listed for this visitor."""
        extensions = current_app.extensions
        studies = {name: served.study for name, served in extensions["studies"].items()}
        studies |= {name: unopened.study for name, unopened in extensions["unopened"].items()}
        visible = ("everywhere", "locally") if _is_local() else ("everywhere",)
        listed = [
            _listed(study, clock())
            for study in studies.values()
            if study.settings.listed in visible
        ]
        return render_template("home.html", studies=listed)


def _is_local() -> bool:
    """Whether the visitor is on this machine; visitors through a proxy name another host."""
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
        from_here = ipaddress.ip_address(request.remote_addr or "").is_loopback
        return from_here and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def _listed(study: LoadedStudy, now: int) -> Listed:
    served = current_app.extensions["studies"].get(study.name)
    if served is None:
        return Listed(study, "error", False)
    try:
        state, rehearsal = served.database.read(
            lambda c: (
                openness(c, study, now),
                collection.last_event(c, collection.REHEARSAL) is not None,
            )
        )
    except StoreError:
        return Listed(study, "error", False)
    return Listed(study, state, rehearsal)
