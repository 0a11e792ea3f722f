"""The Flask application: studies in, routes and safe headers out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, Response, abort, current_app, g
from werkzeug.exceptions import HTTPException

from lore_active.errors import LoreError
from lore_active.study import LoadedStudy
from server.control import Control
from server.headers import SAFE
from server.opening import load_study, open_database
from server.places import place
from server.service import Service
from server.stimuli import Faces, faces
from server.store.database import Database
from server.store.errors import StoreError
from server.store.files import FileIds
from server.views import assets, errors, guard, health, home, incoming, participant

# A participant's page gives up after 15 seconds and tries again.
PATIENCE_SECONDS = 12.0


@dataclass(frozen=True)
class Served:
    """A study as the pages use it."""

    study: LoadedStudy
    database: Database
    service: Service
    control: Control
    faces: Faces


@dataclass(frozen=True)
class Unopened:
    """A study whose database cannot be opened."""

    study: LoadedStudy
    files: FileIds | None
    error: StoreError

    def again(self) -> StoreError:
        """The error for one more who meets it."""
        return type(self.error)(str(self.error))


class NameTwice(LoreError):
    """Two studies that would have the same address."""


def create_app(
    folders: list[Path],
    clock: Callable[[], int],
    known: Sequence[FileIds] = (),
    tolerant: bool = False,
    bots_secret: str = "",
) -> Flask:
    """The application for these study folders.

    `known` are the files that the supervisor has open for each of them, if there is one. When
    `tolerant`, a study whose database cannot be opened gets pages that say so. Participants who
    send `bots_secret` are simulated.
    """
    app = Flask(
        "server",
        static_folder=str(place("static")),
        template_folder=str(place("templates")),
    )
    incoming.bound(app)
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    served: dict[str, Served] = {}
    unopened: dict[str, Unopened] = {}
    for folder, files in zip_longest(folders, known):
        study = load_study(folder, begun=files is not None)
        if study.name in served or study.name in unopened:
            raise NameTwice(f"Two studies are called {study.name!r}; rename one of the folders.")
        try:
            database = open_database(study, clock, files)
        except StoreError as error:
            if not tolerant:
                raise
            unopened[study.name] = Unopened(study, files, error)
            continue
        database.writer.patience = PATIENCE_SECONDS
        served[study.name] = Served(
            study,
            database,
            Service(database, study, clock),
            Control(database, clock),
            faces(study),
        )
    app.extensions["bots_secret"] = bots_secret
    app.extensions["studies"] = served
    app.extensions["unopened"] = unopened
    health.install(app, clock)
    home.install(app, clock)
    app.register_blueprint(participant.pages)
    assets.install(app)
    guard.install(app, clock)
    app.after_request(_safe_headers)
    app.register_error_handler(StoreError, errors.store_error)
    app.register_error_handler(HTTPException, errors.http_error)
    return app


def _safe_headers(response: Response) -> Response:
    for name, value in SAFE.items():
        response.headers.setdefault(name, value)
    if response.status_code == 308:
        # Werkzeug's redirect to the address with its slash names the host that the request named.
        parts = urlsplit(response.headers["Location"])
        query = f"?{parts.query}" if parts.query else ""
        response.headers["Location"] = f"/{parts.path.lstrip('/')}{query}"
        response.set_data(b"")
    return response


def find_study(name: str) -> Served:
    """The study of that name, or a page that says there is none."""
    found: Served | None = current_app.extensions["studies"].get(name)
    if found is None and name in current_app.extensions["unopened"]:
        raise current_app.extensions["unopened"][name].again()
    if found is None:
        abort(404)
    g.served = found
    return found
