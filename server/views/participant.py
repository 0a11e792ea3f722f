"""The participant's pages: one address for where they are, one for each thing they can do."""

from __future__ import annotations

import json
from typing import Any

from flask import (
    Blueprint,
    Response,
    abort,
    g,
    make_response,
    redirect,
    render_template,
    request,
    send_file,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from server.service import UnknownParticipant, UnknownQuestion
from server.stages import Stage, Turned
from server.stimuli import stimulus_files, stimulus_name

pages = Blueprint("participant", __name__, url_prefix="/s/<study>")
SIDES = ("left", "right", "skip", "timeout")


@pages.url_value_preprocessor
def _pull(endpoint: str | None, values: dict[str, Any] | None) -> None:
    from server.app import find_study

    assert values is not None
    find_study(values.pop("study"))


@pages.url_defaults
def _push(endpoint: str, values: dict[str, Any]) -> None:
    values.setdefault("study", g.served.study.name)


@pages.get("/")
def arrive() -> AnyResponse:
    """The link that is given out."""
    found = g.served.service.arrive(
        request.args.to_dict(), request.cookies.get(_cookie()), request.user_agent.string
    )
    if isinstance(found, Turned):
        return make_response(_turned(found))
    response = redirect(url_for("participant.here", token=found.token), 303)
    response.set_cookie(_cookie(), found.token, max_age=30 * 86400, httponly=True, samesite="Lax")
    return response


@pages.get("/p/<token>")
def here(token: str) -> str | AnyResponse:
    """Where this participant is."""
    return _page(_or_unknown(lambda: g.served.service.visit(token)))


@pages.post("/p/<token>/consent")
def consent(token: str) -> str | AnyResponse:
    """They agree or decline."""
    agreed = request.form.get("agreed") == "yes"
    return _next(_or_unknown(lambda: g.served.service.consent(token, agreed)))


@pages.post("/p/<token>/begin")
def begin(token: str) -> str | AnyResponse:
    """They have read the instructions."""
    return _next(_or_unknown(lambda: g.served.service.begin(token)))


@pages.post("/p/<token>/rest")
def rest(token: str) -> str | AnyResponse:
    """They come back from a break."""
    done = request.form.get("done", type=int, default=0)
    return _next(_or_unknown(lambda: g.served.service.rest(token, done)))


@pages.post("/p/<token>/feedback")
def feedback(token: str) -> str | AnyResponse:
    """Their last words."""
    text = request.form.get("text", "")
    return _next(_or_unknown(lambda: g.served.service.feedback(token, text)))


@pages.post("/p/<token>/answer")
def answer(token: str) -> str | AnyResponse:
    """An answer to the question they hold."""
    side = request.form.get("side", "")
    if side not in SIDES:
        abort(400)
    timings = _timings(request.form.get("timings", ""))
    rt = timings.get("rt_ms") if timings else None
    return _next(
        _or_unknown(
            lambda: g.served.service.answer(
                token,
                request.form.get("question", ""),
                side,
                request.form.get("visit", type=int),
                float(rt) if isinstance(rt, (int, float)) else None,
                timings,
            )
        )
    )


@pages.get("/stimulus/<name>")
def stimulus(name: str) -> Response:
    """An item's file, under a name that tells nothing about it."""
    file = stimulus_files(g.served.study).get(name)
    if file is None:
        abort(404)
    response = send_file(file, conditional=True, max_age=86400)
    response.headers["Cache-Control"] = "private, max-age=86400, immutable"
    return response


def _cookie() -> str:
    return f"lore_{g.served.study.name}"


def _timings(text: str) -> dict[str, Any] | None:
    """What the page measured; anything else than a small JSON object is left out."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _or_unknown(act: Any) -> Stage:
    try:
        stage: Stage = act()
    except (UnknownParticipant, UnknownQuestion):
        abort(make_response(_plain("unknown"), 404))
    return stage


def _next(stage: Stage) -> str | AnyResponse:
    """The next part of the page for htmx; a fresh page for everybody else."""
    if request.headers.get("HX-Request"):
        return _page(stage, partial=True)
    if stage.verdict is not None or stage.kind == "elsewhere":
        return _page(stage)
    return redirect(url_for("participant.here", token=stage.participant), 303)


def _page(stage: Stage, partial: bool = False) -> str:
    study = g.served.study
    return render_template(
        "stage.html" if partial else "participant.html",
        stage=stage,
        study=study,
        settings=study.settings,
        texts=study.settings.texts,
        item=lambda number: study.items[number],
        name=lambda number: stimulus_name(study, number),
        stimulus=lambda number: url_for("participant.stimulus", name=stimulus_name(study, number)),
    )


def _turned(turned: Turned) -> str:
    return _plain(turned.kind, turned.code, turned.address)


def _plain(kind: str, code: str = "", address: str = "") -> str:
    settings = g.served.study.settings
    return render_template(
        "message.html",
        settings=settings,
        texts=settings.texts,
        kind=kind,
        code=code,
        address=address,
    )
