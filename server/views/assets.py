"""Scripts and styles: URLs that change with their content, so that browsers can cache them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

from flask import Flask, Response, request, url_for

from server.study.config import LIGHT_GREY, kind_of
from server.study.contrast import palette

# For URLs that change with their content.
KEPT = f"public, max-age={365 * 86400}, immutable"
# Images are compressed already.
COMPRESSIBLE = ("text/css", "text/javascript", "application/javascript", "image/svg+xml")


def install(app: Flask) -> None:
    """Give templates `asset(name)`, and static files headers that let browsers cache them."""
    versions: dict[str, str] = {}
    compressed: dict[str, bytes] = {}
    assert app.static_folder is not None
    folder = Path(app.static_folder)

    def asset(name: str) -> str:
        if name not in versions:
            versions[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()[:10]
        return url_for("static", filename=name, v=versions[name])

    app.jinja_env.globals.update(
        asset=asset, palette=palette, kind_of=kind_of, LIGHT_GREY=LIGHT_GREY
    )
    app.after_request(_caching(compressed))


def _caching(compressed: dict[str, bytes]) -> Callable[[Response], Response]:
    def cache(response: Response) -> Response:
        if request.endpoint != "static" or response.status_code != 200:
            return response
        if "v" not in request.args:
            response.headers["Cache-Control"] = "no-cache"
            return response
        response.headers["Cache-Control"] = KEPT
        response.vary.add("Accept-Encoding")
        if response.mimetype in COMPRESSIBLE and request.accept_encodings.quality("gzip") > 0:
            # The version in the URL could be forged by a client; the ETag cannot.
            name = f"{request.path}?{response.get_etag()[0]}"
            response.direct_passthrough = False
            if name not in compressed:
                compressed[name] = gzip.compress(response.get_data(), 9, mtime=0)
            response.close()
            response.set_data(compressed[name])
            response.headers["Content-Encoding"] = "gzip"
            response.headers.pop("Content-Disposition", None)
        return response

    return cache
