"""The experimenter's views: sign-in, controls of the study, exclusions, view-only links."""

from __future__ import annotations

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
from werkzeug.wrappers import Response as AnyResponse

from lore_active.errors import InvalidParameter
from lore_active.wording import many
from server.auth.sessions import Refused
from server.collection.controls import Control, whole
from server.learning import exclusion_effect
from server.views import access
from server.views.access import open_to

pages = Blueprint("experimenter", __name__, url_prefix="/monitor")
access.protect(pages)


@pages.get("/")
@open_to("anybody")
def studies() -> AnyResponse:
    """The studies that this browser is signed in to, and the sign-in form."""
    return _sign_in_page(request.args.get("study", ""))


@pages.post("/sign-in")
@open_to("anybody")
def sign_in() -> AnyResponse:
    """Sign in to a study with its password."""
    name, password = request.form.get("study", "").strip(), request.form.get("password", "")
    address = request.remote_addr or ""
    studies, unopened = (current_app.extensions[kind] for kind in ("studies", "unopened"))
    if name in unopened or not studies:
        raise unopened.get(name, next(iter(unopened.values()))).again()
    if name not in studies:
        # An unknown name must take as long as a wrong password: any study's hash will do.
        any_study = next(iter(studies))
        return _refused(name, access.access(any_study).refuse(password, name, address))
    old = request.cookies.get(access.session_cookie(name), "")
    session = access.access(name).sign_in(password, request.form.get("who", ""), address, old)
    if isinstance(session, Refused):
        return _refused(name, session)
    response = redirect(url_for("monitor.show", study=name), 303)
    access.keep(response, access.session_cookie(name), session.token, days=7)
    response.delete_cookie(access.SIGN_IN_COOKIE, path="/monitor")
    return response


def _refused(name: str, refusal: Refused) -> AnyResponse:
    seconds = -(-refusal.wait_ms // 1000)
    message = "Wrong study name or password."
    if seconds:
        start = "" if refusal.why == "wait" else message + " "
        message = (
            f"{start}Too many wrong passwords: please wait {_duration(seconds)} and try again."
        )
    response = _sign_in_page(name, message, 429 if refusal.why == "wait" else 403)
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


def _duration(seconds: int) -> str:
    if seconds < 90:
        return many(seconds, "second")
    return many(-(-seconds // 60), "minute")


def _sign_in_page(name: str, message: str = "", code: int = 200) -> AnyResponse:
    token = access.sign_in_token()
    known = [
        served
        for served in current_app.extensions["studies"].values()
        if access.session_of(served.study.name) is not None
    ]
    page = render_template(
        "monitor/sign_in.html", csrf=token, name=name, message=message, known=known
    )
    response = make_response(page, code)
    access.keep(response, access.SIGN_IN_COOKIE, token, days=1, strict=True)
    return response


@pages.post("/<study>/sign-out")
@open_to("experimenter")
def sign_out() -> AnyResponse:
    """Sign out of a study."""
    cookie = access.session_cookie(g.served.study.name)
    access.access(g.served.study.name).sign_out(request.cookies[cookie])
    response = redirect(url_for("experimenter.studies"), 303)
    response.delete_cookie(cookie, path="/monitor")
    return response


@pages.post("/<study>/control/<action>")
@open_to("experimenter")
def control(action: str) -> AnyResponse:
    """Start, pause, resume, stop, reopen; set the budget or the trials per participant."""
    controls: Control = g.served.control
    who = g.session.who
    try:
        if action == "budget":
            controls.extend(who, _whole("answers"), _whole("participants"))
        elif action == "trials":
            controls.set_trials(who, _whole("trials"))
        elif action == "stop":
            reason = request.form.get("reason", "").strip()[:1000]
            controls.stop(who, reason or "Stopped by the experimenter.")
        elif action in ("start", "pause", "resume", "reopen"):
            getattr(controls, action)(who)
        else:
            abort(404)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


@pages.post("/<study>/participants/<int:number>/<any(exclude, restore):act>")
@open_to("experimenter")
def exclusion(number: int, act: str) -> AnyResponse:
    """Exclude a participant from the model, or include them again; a reason is required."""
    reason = request.form.get("reason", "").strip()
    if not reason:
        return _problem("Please give a reason; it is kept in the activity log.")
    try:
        getattr(g.served.control, act)(g.session.who, number, reason)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


@pages.post("/<study>/participants/<int:number>/effect")
@open_to("experimenter")
def effect(number: int) -> AnyResponse:
    """Stream, as lines of JSON, what excluding a participant would change."""
    try:
        lines = exclusion_effect.lines(g.served.study.folder, number)
    except exclusion_effect.AlreadyComputing as error:
        return _problem(str(error))
    response = Response(lines, mimetype="application/jsonl")
    response.headers["Cache-Control"] = "private, no-store"
    # Tells proxies not to buffer the lines.
    response.headers["X-Accel-Buffering"] = "no"
    return response


@pages.post("/<study>/links")
@open_to("experimenter")
def make_link() -> AnyResponse:
    """Create a view-only link."""
    name = g.served.study.name
    token = access.access(name).make_link(g.session.who, request.form.get("label", ""))
    # Without the host, which the client could forge in its request; the page adds its own.
    return make_response(jsonify(address=url_for("monitor.view", token=token)), 201)


@pages.get("/<study>/links")
@open_to("experimenter")
def links() -> AnyResponse:
    """List all view-only links."""
    links = access.access(g.served.study.name).links()
    return jsonify(links=[link.__dict__ for link in links])


@pages.post("/<study>/links/<int:number>/revoke")
@open_to("experimenter")
def revoke_link(number: int) -> AnyResponse:
    """Revoke a view-only link."""
    try:
        access.access(g.served.study.name).revoke_link(g.session.who, number)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


def _whole(name: str) -> int:
    return whole(name, request.form.get(name, "").strip())


def _done() -> AnyResponse:
    """Acknowledge an action: JSON for the page's script, a redirect for a plain form."""
    if request.headers.get("X-Monitor"):
        return jsonify(done=True)
    return redirect(url_for("monitor.show"), 303)


def _problem(message: str) -> AnyResponse:
    if request.headers.get("X-Monitor"):
        return make_response(jsonify(problem=message), 409)
    page = render_template("monitor/problem.html", message=message, back=url_for("monitor.show"))
    return make_response(page, 409)
