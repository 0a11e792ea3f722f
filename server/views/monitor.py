"""The monitor's pages: the page itself, its data and items, exports, the way in for lookers."""

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
from server.views.access import EVERYBODY, open_to

pages = Blueprint("monitor", __name__, url_prefix="/monitor/<study>")
access.protect(pages)


@pages.get("/")
@open_to(*EVERYBODY)
def show() -> str:
    """The monitor."""
    return render_template(
        "monitor/monitor.html",
        study=g.served.study,
        session=g.session,
        steers=g.session.role == "experimenter",
        exports=DOWNLOADS.values(),
        limits={name: most for name, (_, most) in LIMITS.items()},
    )


@pages.get("/data")
@open_to(*EVERYBODY)
def data() -> AnyResponse:
    """Everything that changes, as JSON; 304 while nothing is new."""
    name = g.served.study.name
    watch: Feed = current_app.extensions["watch"][name]
    # This process knows by itself: what cannot be stored cannot be read from the database either.
    error = current_app.extensions["checkups"][name].state().error
    update = watch.update(g.session.role == "experimenter", error)
    packed = request.accept_encodings.quality("gzip") > 0
    response = Response(update.packed if packed else update.plain, mimetype="application/json")
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding, Cookie"
    # Kept by this browser only, and asked about each time.
    response.headers["Cache-Control"] = "private, no-cache"
    response.set_etag(update.version)
    return response.make_conditional(request)


@pages.get("/items")
@open_to(*EVERYBODY)
def items() -> dict[str, object]:
    """The items, which never change: what each is called, and where its file is."""
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
@open_to(*EVERYBODY)
def participant(number: int) -> AnyResponse:
    """One participant's session in detail, as JSON."""
    watch: Feed = current_app.extensions["watch"][g.served.study.name]
    found = watch.session(number, g.session.role == "experimenter")
    if found is None:
        abort(404)
    response = jsonify(found)
    response.headers["Cache-Control"] = "private, no-store"
    return response


@pages.get("/export/<name>")
@open_to("experimenter")
def export(name: str) -> Response:
    """A file to keep."""
    found = DOWNLOADS.get(name)
    if found is None:
        abort(404)
    study = g.served.study
    response = Response(found.write(g.served.database, study), mimetype=found.mimetype)
    response.headers["Content-Disposition"] = f'attachment; filename="{study.name}-{found.name}"'
    return response


@pages.get("/view/<token>")
@open_to("anybody")
def view(token: str) -> AnyResponse:
    """A link for looking: remembered by the browser, so that its address is not passed on."""
    name = g.served.study.name
    if access.access(name).reader(token) is None:
        abort(404)
    response = redirect(url_for("monitor.show"), 303)
    access.keep(response, access.link_cookie(name), token, days=90)
    return response
