"""Calm pages for what goes wrong, in the study's language, each with a way on."""

from __future__ import annotations

from flask import current_app, g, render_template, request, url_for
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from server.store.sqlite.errors import StoreError
from server.study.config import Study

# For addresses outside every study.
NOBODYS = Study(title="lore-active")

Answer = tuple[str, int, dict[str, str]]


def store_error(error: StoreError) -> Answer:
    """The database cannot take it now: nothing was stored, and trying again is right."""
    log_once(error)
    return _calm("trouble", 503, {"Retry-After": "3"})


def log_once(error: StoreError) -> None:
    """Say on the terminal what is wrong; not again for everybody who meets the same error."""
    last = current_app.extensions.get("last_store_error")
    database = g.served.database if g.get("served") is not None else None
    since = database.failure.since if database is not None and database.failure else None
    if since is None or last != (error.name, since):
        current_app.extensions["last_store_error"] = (error.name, since)
        current_app.logger.warning("%s", error)


def http_error(error: HTTPException) -> Answer:
    """Any other error, expected or not."""
    code = error.code or 500
    if code == 400 and error is request.routing_exception:
        # The request names no host that an address of ours could be made for, so there is no page.
        return error.name, code, {"Content-Type": "text/plain; charset=utf-8"}
    kind = "unknown" if code in (404, 405) else "trouble" if code >= 500 else "error"
    headers = {}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.valid_methods or ())
    return _calm(kind, code, headers)


def _calm(kind: str, code: int, headers: dict[str, str]) -> Answer:
    parts = request.path.split("/")
    if "served" not in g and parts[1] == "s" and len(parts) > 2:
        # No page has this address, but it speaks of a study.
        g.served = current_app.extensions["studies"].get(parts[2])
    served = g.get("served")
    settings = served.study.settings if served is not None else NOBODYS
    if served is None and parts[1] == "s" and len(parts) > 2:
        unopened = current_app.extensions["unopened"].get(parts[2])
        settings = settings if unopened is None else unopened.study.settings
    page = render_template(
        "participant/message.html",
        partial=bool(request.headers.get("HX-Request")),
        settings=settings,
        texts=settings.texts,
        kind=kind,
        back=_way_back(kind) if served is not None else "",
    )
    return page, code, headers


def _way_back(kind: str) -> str:
    """Where the participant was, or else the study's link, which knows them by their cookie."""
    token = (request.view_args or {}).get("token")
    if token and kind != "unknown":
        return url_for("participant.here", token=token)
    return url_for("participant.arrive")
