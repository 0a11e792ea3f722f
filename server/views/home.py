"""The page at the server's own address: the studies that may be listed there, and their state."""

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

WORDS = {
    "open": "open",
    "paused": "paused",
    "stopped": "closed",
    "full": "full",
    "error": "technical problem",
}
PILLS = {"open": "running", "paused": "paused", "error": "paused"}


@dataclass(frozen=True)
class Listed:
    """A study on the page; `rehearsal` if answers are only for trying it out."""

    study: LoadedStudy
    state: str
    rehearsal: bool

    @property
    def words(self) -> str:
        """Its state as visitors read it."""
        return WORDS[self.state]

    @property
    def pill(self) -> str:
        """The class of the state's mark."""
        return PILLS.get(self.state, "stopped")


def install(app: Flask, clock: Callable[[], int]) -> None:
    """Give the application its first page."""

    @app.get("/")
    def home() -> str:
        """The studies that may be listed: to visitors on this machine, or to everybody."""
        known = {name: one.study for name, one in current_app.extensions["studies"].items()}
        known |= {name: one.study for name, one in current_app.extensions["unopened"].items()}
        to = ("everywhere", "locally") if _is_local() else ("everywhere",)
        shown = [_listed(one, clock()) for one in known.values() if one.settings.listed in to]
        return render_template("home.html", studies=shown)


def _is_local() -> bool:
    """Whether the visitor is on this machine and means it: a proxy's visitors name another host."""
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
