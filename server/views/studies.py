"""The studies that an application serves, and the lookup for a request."""

from __future__ import annotations

from dataclasses import dataclass

from flask import abort, current_app, g

from server.collection.controls import Control
from server.collection.service import Service
from server.store.database import Database
from server.store.sqlite.errors import StoreError
from server.store.sqlite.files import FileIds
from server.study.config import LoadedStudy
from server.study.items.display import DisplayItems


@dataclass(frozen=True)
class Served:
    """A served study with everything that the views need."""

    study: LoadedStudy
    database: Database
    service: Service
    control: Control
    display_items: DisplayItems


@dataclass(frozen=True)
class Unopened:
    """A study whose database cannot be opened."""

    study: LoadedStudy
    files: FileIds | None
    error: StoreError

    def again(self) -> StoreError:
        """A new instance of the error, for another request."""
        return type(self.error)(str(self.error))


def find_study(name: str) -> Served:
    """Look up a study by name; an unknown name gives a 404 page."""
    served: Served | None = current_app.extensions["studies"].get(name)
    if served is None and name in current_app.extensions["unopened"]:
        raise current_app.extensions["unopened"][name].again()
    if served is None:
        abort(404)
    g.served = served
    served.database.writer.let_go_first()
    return served
