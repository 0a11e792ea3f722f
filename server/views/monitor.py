"""The monitor's views: page, data, items, downloads, and entry by view-only links."""

from __future__ import annotations

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    g,
    jsonify,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from server.collection.controls import LIMITS
from server.exports.downloads import DOWNLOADS
from server.monitor.feed import Feed
from server.study.items.display import stimulus_name
from server.views import access
from server.views.access import ALL_ROLES, open_to

pages = Blueprint("monitor", __name__, url_prefix="/monitor/<study>")
access.protect(pages)


@pages.get("/")
@open_to(*ALL_ROLES)
def show() -> str:
    """The monitor page."""
    return render_template(
        "monitor/monitor.html",
        study=g.served.study,
        session=g.session,
        steers=g.session.role == "experimenter",
        exports=DOWNLOADS.values(),
        limits={name: maximum for name, (_, maximum) in LIMITS.items()},
    )


@pages.get("/data")
@open_to(*ALL_ROLES)
def data() -> AnyResponse:
    """Everything that changes, as JSON; 304 while nothing is new."""
    name = g.served.study.name
    feed: Feed = current_app.extensions["feeds"][name]
    # From this process, because a storage error could not be read from the database.
    error = current_app.extensions["checkups"][name].state().error
    update = feed.update(g.session.role == "experimenter", error)
    packed = request.accept_encodings.quality("gzip") > 0
    response = Response(update.packed if packed else update.plain, mimetype="application/json")
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding, Cookie"
    # Cached by this browser only, and revalidated each time.
    response.headers["Cache-Control"] = "private, no-cache"
    response.set_etag(update.version)
    return response.make_conditional(request)


@pages.get("/items")
@open_to(*ALL_ROLES)
def items() -> dict[str, object]:
    """Keys, labels and file URLs of the items, which never change."""
    study = g.served.study
    return {
        "items": [
            {
                "key": item.key,
                "kind": item.kind,
                "label": item.label,
                "text": item.text[:200],
                "address": None
                if item.file is None
                else url_for(
                    "participant.stimulus", study=study.name, name=stimulus_name(study, number)
                ),
            }
            for number, item in enumerate(study.items)
        ]
    }


@pages.get("/participants/<int:number>")
@open_to(*ALL_ROLES)
def participant(number: int) -> AnyResponse:
    """One participant's session in detail, as JSON."""
    feed: Feed = current_app.extensions["feeds"][g.served.study.name]
    session = feed.session(number, g.session.role == "experimenter")
    if session is None:
        abort(404)
    response = jsonify(session)
    response.headers["Cache-Control"] = "private, no-store"
    return response


@pages.get("/export/<name>")
@open_to("experimenter")
def export(name: str) -> Response:
    """Download a file of the study's data."""
    download = DOWNLOADS.get(name)
    if download is None:
        abort(404)
    study = g.served.study
    response = Response(download.write(g.served.database, study), mimetype=download.mimetype)
    filename = f"{study.name}-{download.name}"
    response.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


@pages.get("/view/<token>")
@open_to("anybody")
def view(token: str) -> AnyResponse:
    """Open a view-only link; its token moves to a cookie, so that the URL is not passed on."""
    name = g.served.study.name
    if access.access(name).reader(token) is None:
        abort(404)
    response = redirect(url_for("monitor.show"), 303)
    access.keep(response, access.link_cookie(name), token, days=90)
    return response
