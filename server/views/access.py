"""The monitor's doors in Flask: cookies, roles, forged requests, headers; shut unless opened."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    g,
    jsonify,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from server.auth.sessions import Access, ExperimenterSession, Role
from server.store.sqlite.errors import StoreError
from server.views import errors, requests
from server.views.headers import PLOT_STYLE
from server.views.studies import find_study

View = TypeVar("View", bound=Callable[..., Any])

DOOR = "lore_door"
DOOR_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
# Read by programs, which could do nothing with a page that asks for a password.
DATA = ("monitor.data", "monitor.items", "monitor.participant", "experimenter.links")
SAFE = ("GET", "HEAD", "OPTIONS")
EVERYBODY: tuple[Role, ...] = ("experimenter", "reader")
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {PLOT_STYLE}; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def open_to(*roles: Role | str) -> Callable[[View], View]:
    """Say who may use a view: roles, or `anybody`."""

    def mark(view: View) -> View:
        view.open_to = roles  # type: ignore[attr-defined]
        return view

    return mark


def protect(pages: Blueprint) -> None:
    """Put the doors before every view of a blueprint."""
    pages.url_value_preprocessor(_pull)
    pages.url_defaults(_push)
    pages.before_request(_guard)
    pages.after_request(_headers)
    pages.register_error_handler(HTTPException, _http_error)
    pages.register_error_handler(StoreError, _store_error)


def access(name: str) -> Access:
    """The doors of one study."""
    found: Access = current_app.extensions["access"][name]
    return found


def session_cookie(name: str) -> str:
    """Where a browser keeps an experimenter's token."""
    return f"lore_monitor_{name}"


def link_cookie(name: str) -> str:
    """Where a browser keeps the token of a link for looking."""
    return f"lore_view_{name}"


def keep(response: AnyResponse, cookie: str, token: str, days: int, strict: bool = False) -> None:
    """Give the browser a token that scripts and other sites cannot use."""
    response.set_cookie(
        cookie,
        token,
        max_age=days * 86400,
        path="/monitor",
        httponly=True,
        secure=request.is_secure,
        samesite="Strict" if strict else "Lax",
    )


def session_of(name: str) -> ExperimenterSession | None:
    """Who is looking at this study's pages; an experimenter's own session comes first."""
    own = request.cookies.get(session_cookie(name))
    found = access(name).session(own) if own else None
    if found is None:
        link = request.cookies.get(link_cookie(name))
        found = access(name).reader(link) if link else None
    return found


def door_token() -> str:
    """What the sign-in form must carry: the same as a cookie that only our pages set."""
    token = request.cookies.get(DOOR, "")
    return token if DOOR_TOKEN.fullmatch(token) else secrets.token_urlsafe(24)


def _pull(endpoint: str | None, values: dict[str, Any] | None) -> None:
    if values and "study" in values:
        find_study(values.pop("study"))


def _push(endpoint: str, values: dict[str, Any]) -> None:
    if "served" in g and current_app.url_map.is_endpoint_expecting(endpoint, "study"):
        values.setdefault("study", g.served.study.name)


def _guard() -> AnyResponse | None:
    roles = getattr(current_app.view_functions[request.endpoint or ""], "open_to", ())
    g.session = session_of(g.served.study.name) if "served" in g else None
    if request.method not in SAFE and not _from_here():
        abort(403)
    if "anybody" in roles:
        if request.method not in SAFE and not _matches(request.cookies.get(DOOR)):
            abort(403)
        return None
    if g.session is None:
        if request.method in SAFE and not _wants_data():
            return redirect(url_for("experimenter.studies", study=g.served.study.name), 303)
        abort(401)
    if g.session.role not in roles:
        abort(403)
    if request.method not in SAFE and not _matches(g.session.csrf):
        abort(403)
    return None


def _wants_data() -> bool:
    return request.endpoint in DATA or request.headers.get("X-Monitor") == "1"


def _from_here() -> bool:
    """Whether the browser says that one of our own pages sent this."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or requests.host_of(origin) == request.host


def _matches(wanted: str | None) -> bool:
    given = request.form.get("csrf", "")
    return bool(wanted) and hmac.compare_digest(given.encode(), (wanted or "").encode())


def _http_error(error: HTTPException) -> AnyResponse:
    words = {
        401: "Please sign in first.",
        403: "You may not do this, or the page was too old. Go back, load it anew and try again.",
        404: "There is nothing at this address.",
    }
    return _told(words.get(error.code or 500, error.name), error.code or 500)


def _store_error(error: StoreError) -> AnyResponse:
    errors.log_once(error)
    return _told(f"{error.meaning} {error.advice} Nothing was changed.", 503)


def _told(words: str, code: int) -> AnyResponse:
    if _wants_data():
        return make_response(jsonify(problem=words), code)
    back = url_for("experimenter.studies")
    return make_response(render_template("monitor/problem.html", words=words, back=back), code)


def _headers(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    # With no referrer at all, forms would carry no origin to check.
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
