"""The Flask application: studies in, routes and safe headers out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, Response, abort, current_app, g
from werkzeug.exceptions import HTTPException

from lore_active.errors import LoreError
from lore_active.study import LoadedStudy
from server.control import Control
from server.headers import SAFE
from server.opening import open_study
from server.places import place
from server.service import Service
from server.stimuli import Faces, faces
from server.store.database import Database, StoreTrouble
from server.views import assets, errors, guard, incoming, participant


@dataclass(frozen=True)
class Served:
    """A study as the pages use it."""

    study: LoadedStudy
    database: Database
    service: Service
    control: Control
    faces: Faces


class NameTwice(LoreError):
    """Two studies that would have the same address."""


def create_app(folders: list[Path], clock: Callable[[], int]) -> Flask:
    """The application for these study folders."""
    app = Flask(
        "server",
        static_folder=str(place("static")),
        template_folder=str(place("templates")),
    )
    incoming.bound(app)
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    served: dict[str, Served] = {}
    for folder in folders:
        study, database = open_study(folder, clock)
        if study.name in served:
            raise NameTwice(f"Two studies are called {study.name!r}; rename one of the folders.")
        served[study.name] = Served(
            study,
            database,
            Service(database, study, clock),
            Control(database, clock),
            faces(study),
        )
    app.extensions["studies"] = served
    app.register_blueprint(participant.pages)
    assets.install(app)
    guard.install(app, clock)
    app.after_request(_safe_headers)
    app.register_error_handler(StoreTrouble, errors.store_trouble)
    app.register_error_handler(HTTPException, errors.http_error)
    app.add_url_rule("/health", view_func=lambda: {"ok": True}, endpoint="health")
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
    if found is None:
        abort(404)
    g.served = found
    return found
