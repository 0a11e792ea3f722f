"""Authentication of the monitor's pages: cookies, roles, CSRF, headers; closed by default."""

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

SIGN_IN_COOKIE = "lore_sign_in"
SIGN_IN_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
# Requested by scripts, which get an error as JSON instead of a sign-in page.
DATA = ("monitor.data", "monitor.items", "monitor.participant", "experimenter.links")
SAFE = ("GET", "HEAD", "OPTIONS")
ALL_ROLES: tuple[Role, ...] = ("experimenter", "reader")
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' {PLOT_STYLE}; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def open_to(*roles: Role | str) -> Callable[[View], View]:
    """Declare which roles can use a view; `anybody` needs no session."""

    def mark(view: View) -> View:
        view.open_to = roles  # type: ignore[attr-defined]
        return view

    return mark


def protect(pages: Blueprint) -> None:
    """Require authentication for every view of a blueprint."""
    pages.url_value_preprocessor(_pull)
    pages.url_defaults(_push)
    pages.before_request(_guard)
    pages.after_request(_headers)
    pages.register_error_handler(HTTPException, _http_error)
    pages.register_error_handler(StoreError, _store_error)


def access(name: str) -> Access:
    """The authentication service of one study."""
    service: Access = current_app.extensions["access"][name]
    return service


def session_cookie(name: str) -> str:
    """Name of the cookie that holds an experimenter's session token."""
    return f"lore_monitor_{name}"


def link_cookie(name: str) -> str:
    """Name of the cookie that holds the token of a view-only link."""
    return f"lore_view_{name}"


def keep(response: AnyResponse, cookie: str, token: str, days: int, strict: bool = False) -> None:
    """Set a cookie with a token that scripts and other sites cannot use."""
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
    """The visitor's session for a study; an experimenter's takes precedence over a link's."""
    own = request.cookies.get(session_cookie(name))
    session = access(name).session(own) if own else None
    if session is None:
        link = request.cookies.get(link_cookie(name))
        session = access(name).reader(link) if link else None
    return session


def sign_in_token() -> str:
    """CSRF token of the sign-in form; must equal a cookie that only our own pages set."""
    token = request.cookies.get(SIGN_IN_COOKIE, "")
    return token if SIGN_IN_TOKEN.fullmatch(token) else secrets.token_urlsafe(24)


def _pull(endpoint: str | None, values: dict[str, Any] | None) -> None:
    if values and "study" in values:
        find_study(values.pop("study"))


def _push(endpoint: str, values: dict[str, Any]) -> None:
    if "served" in g and current_app.url_map.is_endpoint_expecting(endpoint, "study"):
        values.setdefault("study", g.served.study.name)


def _guard() -> AnyResponse | None:
    roles = getattr(current_app.view_functions[request.endpoint or ""], "open_to", ())
    g.session = session_of(g.served.study.name) if "served" in g else None
    if request.method not in SAFE and not _same_origin():
        abort(403)
    if "anybody" in roles:
        if request.method not in SAFE and not _matches(request.cookies.get(SIGN_IN_COOKIE)):
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


def _same_origin() -> bool:
    """Whether, according to the browser, one of our own pages sent the request."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    return origin is None or requests.host_of(origin) == request.host


def _matches(expected: str | None) -> bool:
    token = request.form.get("csrf", "")
    return bool(expected) and hmac.compare_digest(token.encode(), (expected or "").encode())


def _http_error(error: HTTPException) -> AnyResponse:
    messages = {
        401: "Please sign in first.",
        403: "You do not have permission, or the page has expired. Reload the page and try again.",
        404: "Page not found.",
    }
    return _error_response(messages.get(error.code or 500, error.name), error.code or 500)


def _store_error(error: StoreError) -> AnyResponse:
    errors.log_once(error)
    return _error_response(f"{error.meaning} {error.advice} Nothing was changed.", 503)


def _error_response(message: str, code: int) -> AnyResponse:
    if _wants_data():
        return make_response(jsonify(problem=message), code)
    back = url_for("experimenter.studies")
    return make_response(render_template("monitor/problem.html", message=message, back=back), code)


def _headers(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    # With no referrer at all, forms would not send the origin that `_same_origin` needs.
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
