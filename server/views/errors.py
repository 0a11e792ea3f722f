"""Error pages for participants, in the study's language, each with a link to continue."""

from __future__ import annotations

from flask import current_app, g, render_template, request, url_for
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from server.store.sqlite.errors import StoreError
from server.study.config import Study

# For URLs outside every study.
NO_STUDY = Study(title="lore-active")

Reply = tuple[str, int, dict[str, str]]


def store_error(error: StoreError) -> Reply:
    """The database cannot store anything now: nothing was saved, and a retry is safe."""
    log_once(error)
    return _error_page("trouble", 503, {"Retry-After": "3"})


def log_once(error: StoreError) -> None:
    """Log an error once, not again for every request that meets the same one."""
    last = current_app.extensions.get("last_store_error")
    database = g.served.database if g.get("served") is not None else None
    since = database.failure.since if database is not None and database.failure else None
    if since is None or last != (error.name, since):
        current_app.extensions["last_store_error"] = (error.name, since)
        current_app.logger.warning("%s", error)


def http_error(error: HTTPException) -> Reply:
    """Error page for any other error, expected or not."""
    code = error.code or 500
    if code == 400 and error is request.routing_exception:
        # Without a valid host in the request no URL can be built, so there is no HTML page.
        return error.name, code, {"Content-Type": "text/plain; charset=utf-8"}
    kind = "unknown" if code in (404, 405) else "trouble" if code >= 500 else "error"
    headers = {}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = ", ".join(error.valid_methods or ())
    return _error_page(kind, code, headers)


def _error_page(kind: str, code: int, headers: dict[str, str]) -> Reply:
    parts = request.path.split("/")
    if "served" not in g and parts[1] == "s" and len(parts) > 2:
        # No route matches this URL, but it names a study.
        g.served = current_app.extensions["studies"].get(parts[2])
    served = g.get("served")
    settings = served.study.settings if served is not None else NO_STUDY
    if served is None and parts[1] == "s" and len(parts) > 2:
        unopened = current_app.extensions["unopened"].get(parts[2])
        settings = settings if unopened is None else unopened.study.settings
    page = render_template(
        "participant/message.html",
        partial=bool(request.headers.get("HX-Request")),
        settings=settings,
        texts=settings.texts,
        kind=kind,
        back=_link_back(kind) if served is not None else "",
    )
    return page, code, headers


def _link_back(kind: str) -> str:
    """URL of the participant's page, or else the study's link, which recognises their cookie."""
    token = (request.view_args or {}).get("token")
    if token and kind != "unknown":
        return url_for("participant.here", token=token)
    return url_for("participant.arrive")
