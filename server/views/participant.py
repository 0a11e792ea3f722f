"""The participant's views: one URL for the current page, and one for each action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    send_file,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from server.collection import simulated
from server.collection.screens import REFUSED, Note, Rejected, Screen
from server.collection.service import QuestionNotFound, UnknownParticipant
from server.monitor.closing_map import ClosingMap, closing_map
from server.study.contrast import palette
from server.views import requests
from server.views.assets import KEPT
from server.views.headers import CLOSED
from server.views.studies import find_study
from server.views.trial_parts import TrialParts

Reply = str | tuple[str, int] | AnyResponse
pages = Blueprint("participant", __name__, url_prefix="/s/<study>")
# Notes that a page without scripts gets through its URL; all others follow from the state.
NOTES: tuple[Note, ...] = ("timed_out", *REFUSED)
TRIAL = "participant/_trial.html"
COOKIE = "lore"
COOKIE_SECONDS = 30 * 86400
# The answer was incomplete or broke the study's rules, and nothing was stored.
NOT_TAKEN = 422


@pages.url_value_preprocessor
def _pull(endpoint: str | None, values: dict[str, Any] | None) -> None:
    assert values is not None
    find_study(values.pop("study"))


@pages.url_defaults
def _push(endpoint: str, values: dict[str, Any]) -> None:
    if "served" in g:
        values.setdefault("study", g.served.study.name)


@pages.get("/")
def arrive() -> AnyResponse:
    """The recruitment link."""
    try:
        secret = current_app.extensions["bots_secret"]
        bot = simulated.is_bot(request.headers.get(simulated.HEADER), secret)
    except simulated.WrongSecret:
        abort(403)
    outcome = g.served.service.arrive(
        request.args.to_dict(), request.cookies.get(COOKIE), request.user_agent.string, bot
    )
    if isinstance(outcome, Rejected):
        return make_response(_message(outcome.kind, outcome.code, outcome.address))
    response = redirect(url_for("participant.here", token=outcome.token), 303)
    # Optional: inside another site's frame it is blocked, and the token in the URL is enough.
    response.set_cookie(
        COOKIE,
        outcome.token,
        max_age=COOKIE_SECONDS,
        path=url_for("participant.arrive"),
        httponly=True,
        secure=request.is_secure,
        samesite="Lax",
    )
    return response


@pages.get("/p/<token>")
def here(token: str) -> str:
    """The current page; without scripts, `after` names the note about the last answer."""
    stage, after = _or_unknown(lambda: g.served.service.visit(token)), request.args.get("after")
    if stage.kind in ("practice", "trial") and after in NOTES:
        stage = replace(stage, note=after)
    return _page(stage)


@pages.get("/p/<token>/look")
def look(token: str) -> str:
    """The current page, for a paused page that polls until the study resumes."""
    visit = request.args.get("visit", type=int)
    return _page(_or_unknown(lambda: g.served.service.look(token, visit)))


@pages.get("/p/<token>/elsewhere")
def elsewhere(token: str) -> str:
    """The page for a window that a newer one has replaced."""
    return _page(Screen("elsewhere", token, 0))


@pages.post("/p/<token>/consent")
def consent(token: str) -> Reply:
    """Give or decline consent."""
    agreed = request.form.get("agreed") == "yes"
    return _next(_or_unknown(lambda: g.served.service.consent(token, agreed, _visit())))


@pages.post("/p/<token>/leave")
def leave(token: str) -> Reply:
    """Confirm declining."""
    return _next(_or_unknown(lambda: g.served.service.leave(token)))


@pages.post("/p/<token>/reconsider")
def reconsider(token: str) -> Reply:
    """Undo declining."""
    return _next(_or_unknown(lambda: g.served.service.reconsider(token)))


@pages.post("/p/<token>/begin")
def begin(token: str) -> Reply:
    """Start after the instructions."""
    return _next(_or_unknown(lambda: g.served.service.begin(token, _visit())))


@pages.post("/p/<token>/rest")
def rest(token: str) -> Reply:
    """Continue from a page between questions."""
    done = request.form.get("done", type=int, default=0)
    return _next(_or_unknown(lambda: g.served.service.rest(token, done, _visit())))


@pages.post("/p/<token>/feedback")
def feedback(token: str) -> Reply:
    """Store a comment and finish."""
    text = request.form.get("text", "")
    return _next(_or_unknown(lambda: g.served.service.feedback(token, text)))


@pages.post("/p/<token>/answer")
def answer(token: str) -> Reply:
    """Store the answer to the current question."""
    response = requests.response(request.form, g.served.study.kind)
    if response is None:
        abort(400)
    timings = requests.timings(request.form.get("timings", ""))
    stage = _or_unknown(
        lambda: g.served.service.answer(
            token,
            request.form.get("question", ""),
            response,
            _visit(),
            requests.milliseconds(timings.get("rt_ms")) if timings else None,
            timings,
        )
    )
    return _next(stage)


@pages.get("/surroundings.css")
def surroundings() -> Response:
    """Colours that match the study's background; the URL changes with it."""
    colours = asdict(palette(g.served.study.settings.trial.background))
    rules = [f"color-scheme: only {colours.pop('scheme')}"]
    rules += [f"--{name.replace('_', '-')}: {value}" for name, value in colours.items()]
    response = Response(f":root {{ {'; '.join(rules)} }}\n", mimetype="text/css")
    if "v" in request.args:
        response.headers["Cache-Control"] = KEPT
    return response


@pages.get("/stimulus/<name>")
def stimulus(name: str) -> Response:
    """An item's file, under a name that reveals nothing about it."""
    if name not in g.served.display_items.files:
        abort(404)
    file, kind = g.served.display_items.files[name]
    # Checked again: since the study was opened, a symbolic link may have replaced the file.
    if not file.is_file() or file.resolve() != file:
        abort(404)
    response = send_file(file, mimetype=kind, conditional=True, max_age=86400)
    response.headers["Content-Security-Policy"] = CLOSED
    response.headers["Cache-Control"] = "private, max-age=86400, immutable"
    # Must not reveal the file's name.
    response.headers.pop("Content-Disposition", None)
    return response


def _or_unknown(act: Callable[[], Screen]) -> Screen:
    try:
        return act()
    except (UnknownParticipant, QuestionNotFound):
        abort(404)


def _visit() -> int | None:
    """The window that a form was sent from."""
    return request.form.get("visit", type=int)


def _next(stage: Screen) -> Reply:
    """The next page: a fragment for htmx, otherwise a redirect, so that reloading is safe."""
    if request.headers.get("HX-Request"):
        page = _page(stage)
        return (page, NOT_TAKEN) if stage.note in REFUSED and stage.trial else page
    # The second request of a double click comes from a page that the first has already replaced:
    # if nothing was refused, there is no other window to point out.
    if stage.kind == "elsewhere" and stage.note:
        return redirect(url_for("participant.elsewhere", token=stage.participant), 303)
    after = stage.note if stage.note in NOTES else None
    return redirect(url_for("participant.here", token=stage.participant, after=after), 303)


def _page(stage: Screen) -> str:
    settings, parts = g.served.study.settings, _parts()
    partial = bool(request.headers.get("HX-Request"))
    context = {
        "stage": stage,
        "settings": settings,
        "texts": settings.texts,
        "parts": parts,
        "upcoming": parts.to_load(stage.upcoming),
        "partial": partial,
    }
    if partial and stage.kind in ("practice", "trial"):
        # The response to nearly every answer: without what Flask adds to other pages.
        return parts.title + current_app.jinja_env.get_template(TRIAL).render(context)
    return render_template(
        "participant/page.html",
        display_items=g.served.display_items.by_number,
        map=_map() if stage.kind == "finished" else None,
        **context,
    )


def _parts() -> TrialParts:
    known: dict[str, TrialParts] = current_app.extensions.setdefault("trial_parts", {})
    study = g.served.study
    if study.name not in known:
        known[study.name] = TrialParts(study, g.served.display_items)
    return known[study.name]


def _map() -> ClosingMap | None:
    """The current map, only for participants whose answers it can no longer influence."""
    if not g.served.study.settings.completion.show_map:
        return None
    return closing_map(g.served.database, g.served.study)


def _message(kind: str, code: str = "", address: str = "") -> str:
    settings = g.served.study.settings
    return render_template(
        "participant/message.html",
        partial=False,
        settings=settings,
        texts=settings.texts,
        kind=kind,
        code=code,
        address=address,
    )
