"""The experimenter's doors and levers: sign in and out, steer the study, exclude, share links."""

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
    """The studies that this browser may see, and the form for one more."""
    return _door(request.args.get("study", ""))


@pages.post("/sign-in")
@open_to("anybody")
def sign_in() -> AnyResponse:
    """A password for a study."""
    name, password = request.form.get("study", "").strip(), request.form.get("password", "")
    address = request.remote_addr or ""
    studies, unopened = (current_app.extensions[kind] for kind in ("studies", "unopened"))
    if name in unopened or not studies:
        raise unopened.get(name, next(iter(unopened.values()))).again()
    if name not in studies:
        # Any study's database and password do for the work that must be done.
        any_study = next(iter(studies))
        return _refused(name, access.access(any_study).refuse(password, name, address))
    old = request.cookies.get(access.session_cookie(name), "")
    found = access.access(name).sign_in(password, request.form.get("who", ""), address, old)
    if isinstance(found, Refused):
        return _refused(name, found)
    response = redirect(url_for("monitor.show", study=name), 303)
    access.keep(response, access.session_cookie(name), found.token, days=7)
    response.delete_cookie(access.DOOR, path="/monitor")
    return response


def _refused(name: str, found: Refused) -> AnyResponse:
    seconds = -(-found.wait_ms // 1000)
    words = "Wrong study name or password."
    if seconds:
        start = "" if found.why == "wait" else words + " "
        words = f"{start}Too many wrong passwords: please wait {_spoken(seconds)} and try again."
    response = _door(name, words, 429 if found.why == "wait" else 403)
    if seconds:
        response.headers["Retry-After"] = str(seconds)
    return response


def _spoken(seconds: int) -> str:
    if seconds < 90:
        return f"{seconds} seconds"
    return f"{-(-seconds // 60)} minutes"


def _door(name: str, words: str = "", code: int = 200) -> AnyResponse:
    token = access.door_token()
    known = [
        one
        for one in current_app.extensions["studies"].values()
        if access.session_of(one.study.name) is not None
    ]
    page = render_template("monitor/door.html", csrf=token, name=name, words=words, known=known)
    response = make_response(page, code)
    access.keep(response, access.DOOR, token, days=1, strict=True)
    return response


@pages.post("/<study>/sign-out")
@open_to("experimenter")
def sign_out() -> AnyResponse:
    """End this session."""
    cookie = access.session_cookie(g.served.study.name)
    access.access(g.served.study.name).sign_out(request.cookies[cookie])
    response = redirect(url_for("experimenter.studies"), 303)
    response.delete_cookie(cookie, path="/monitor")
    return response


@pages.post("/<study>/control/<action>")
@open_to("experimenter")
def control(action: str) -> AnyResponse:
    """Start, pause, resume, stop, reopen; set the budget or the trials of each person."""
    levers: Control = g.served.control
    who = g.session.who
    try:
        if action == "budget":
            levers.extend(who, _whole("answers"), _whole("participants"))
        elif action == "trials":
            levers.set_trials(who, _whole("trials"))
        elif action == "stop":
            reason = request.form.get("reason", "").strip()[:1000]
            levers.stop(who, reason or "Stopped by the experimenter.")
        elif action in ("start", "pause", "resume", "reopen"):
            getattr(levers, action)(who)
        else:
            abort(404)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


@pages.post("/<study>/participants/<int:number>/<any(exclude, restore):act>")
@open_to("experimenter")
def exclusion(number: int, act: str) -> AnyResponse:
    """Leave somebody out of the model, or take them back in; a reason is asked for."""
    reason = request.form.get("reason", "").strip()
    if not reason:
        return _problem("Please give a reason: it goes into the log.")
    try:
        getattr(g.served.control, act)(g.session.who, number, reason)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


@pages.post("/<study>/participants/<int:number>/effect")
@open_to("experimenter")
def effect(number: int) -> AnyResponse:
    """What excluding somebody would change: lines of JSON while it is computed."""
    try:
        found = exclusion_effect.lines(g.served.study.folder, number)
    except exclusion_effect.AlreadyComputing as error:
        return _problem(str(error))
    response = Response(found, mimetype="application/jsonl")
    response.headers["Cache-Control"] = "private, no-store"
    # For proxies that would collect the lines before they pass them on.
    response.headers["X-Accel-Buffering"] = "no"
    return response


@pages.post("/<study>/links")
@open_to("experimenter")
def make_link() -> AnyResponse:
    """A new link for looking."""
    name = g.served.study.name
    token = access.access(name).make_link(g.session.who, request.form.get("label", ""))
    # Without a host: the one that a request names is anybody's word. The page knows its own.
    return make_response(jsonify(address=url_for("monitor.view", token=token)), 201)


@pages.get("/<study>/links")
@open_to("experimenter")
def links() -> AnyResponse:
    """All links for looking that there are."""
    found = access.access(g.served.study.name).links()
    return jsonify(links=[one.__dict__ for one in found])


@pages.post("/<study>/links/<int:number>/revoke")
@open_to("experimenter")
def revoke_link(number: int) -> AnyResponse:
    """Shut a link."""
    try:
        access.access(g.served.study.name).revoke_link(g.session.who, number)
    except InvalidParameter as error:
        return _problem(str(error))
    return _done()


def _whole(name: str) -> int:
    return whole(name, request.form.get(name, "").strip())


def _done() -> AnyResponse:
    """It has happened; the page's script wants to know, a plain form goes back."""
    if request.headers.get("X-Monitor"):
        return jsonify(done=True)
    return redirect(url_for("monitor.show"), 303)


def _problem(words: str) -> AnyResponse:
    if request.headers.get("X-Monitor"):
        return make_response(jsonify(problem=words), 409)
    page = render_template("monitor/problem.html", words=words, back=url_for("monitor.show"))
    return make_response(page, 409)
