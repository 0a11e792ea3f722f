"""The Flask application: studies, routes and security headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from lore_active.errors import LoreError
from server.auth.sessions import Access
from server.collection.controls import Control
from server.collection.service import Service
from server.monitor.feed import Feed
from server.paths import place
from server.store.sqlite.errors import StoreError
from server.store.sqlite.files import FileIds
from server.study.items.display import display_items
from server.study.workspace import as_begun, load_study, open_database
from server.views import (
    assets,
    errors,
    experimenter,
    health,
    home,
    monitor,
    participant,
    requests,
)
from server.views.headers import SAFE
from server.views.studies import Served, Unopened

# A participant's page times out after 15 seconds and retries.
PATIENCE_SECONDS = 12.0


class NameTwice(LoreError):
    """Two studies that would have the same URL."""


def create_app(
    folders: list[Path],
    clock: Callable[[], int],
    known: Sequence[FileIds] = (),
    tolerant: bool = False,
    bots_secret: str = "",
) -> Flask:
    """Create the application for these study folders.

    `known` are the files that the supervisor has open for each of them, if there is one. If
    `tolerant`, a study whose database cannot be opened shows an error page. Participants that send
    `bots_secret` are simulated.
    """
    app = Flask(
        "server",
        static_folder=str(place("static")),
        template_folder=str(place("templates")),
    )
    requests.bound(app)
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    served: dict[str, Served] = {}
    unopened: dict[str, Unopened] = {}
    for folder, files in zip_longest(folders, known):
        study = load_study(folder, begun=files is not None)
        if study.name in served or study.name in unopened:
            raise NameTwice(f"Two studies have the name {study.name!r}; rename one of the folders.")
        try:
            database = open_database(study, clock, files)
        except StoreError as error:
            if not tolerant:
                raise
            unopened[study.name] = Unopened(study, files, error)
            continue
        database.writer.patience = PATIENCE_SECONDS
        study = as_begun(study, database)
        served[study.name] = Served(
            study,
            database,
            Service(database, study, clock),
            Control(database, clock),
            display_items(study),
        )
    app.extensions["bots_secret"] = bots_secret
    app.extensions["studies"] = served
    app.extensions["unopened"] = unopened
    health.install(app, clock)
    home.install(app, clock)
    app.register_blueprint(participant.pages)
    assets.install(app)
    _install_monitor(app, clock)
    app.after_request(_safe_headers)
    app.register_error_handler(StoreError, errors.store_error)
    app.register_error_handler(HTTPException, errors.http_error)
    return app


def _install_monitor(app: Flask, clock: Callable[[], int]) -> None:
    studies: dict[str, Served] = app.extensions["studies"]
    app.extensions["access"] = {
        name: Access(served.database, served.study.folder, clock)
        for name, served in studies.items()
    }
    feeds = app.extensions["feeds"] = {
        name: Feed(served.database, served.study, clock) for name, served in studies.items()
    }

    def rest(_: BaseException | None) -> None:
        for feed in feeds.values():
            feed.rest()

    # After any request, including those of participants: an idle process keeps what it has read.
    app.teardown_request(rest)
    for pages in (experimenter.pages, monitor.pages):
        app.register_blueprint(pages)


def _safe_headers(response: Response) -> Response:
    present = {name.lower() for name, _ in response.headers}
    for name, value in SAFE.items():
        if name.lower() not in present:
            response.headers.add(name, value)
    if response.status_code == 308:
        # Werkzeug's redirect to the URL with a trailing slash repeats the host of the request.
        parts = urlsplit(response.headers["Location"])
        query = f"?{parts.query}" if parts.query else ""
        response.headers["Location"] = f"/{parts.path.lstrip('/')}{query}"
        response.set_data(b"")
    return response
