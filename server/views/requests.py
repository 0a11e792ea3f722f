"""Requests as they come from outside, bounded before any view reads them."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import quote, urlsplit

from flask import Flask, Request
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.routing import IntegerConverter, Map

LARGEST_REQUEST = 64 * 1024
# No row has a higher number, and SQLite could not be asked for one.
HIGHEST_NUMBER = 2**53
MAX_TIMINGS = 8000
# Everything printable stays as it is; quoting what is quoted already would change it.
PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class Asked(Request):
    """A request without files, and whose query holds nothing but printable ASCII.

    The rest is percent-encoded: Werkzeug takes a query for UTF-8, which it need not be.
    """

    def __init__(self, environ: dict[str, Any], *more: Any, **named: Any) -> None:
        query = environ.get("QUERY_STRING", "")
        if not (query.isascii() and query.isprintable()):
            environ["QUERY_STRING"] = quote(query.encode("latin-1", "replace"), safe=PRINTABLE)
        super().__init__(environ, *more, **named)

    def _get_file_stream(self, *about: Any, **more: Any) -> Any:
        raise UnsupportedMediaType


class Number(IntegerConverter):
    """A whole number in an address."""

    def __init__(self, map: Map, *more: Any, **named: Any) -> None:
        super().__init__(map, *more, **{"max": HIGHEST_NUMBER, **named})


def bound(app: Flask) -> None:
    """Let the application take only what it can use; before its routes are registered."""
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    app.request_class = Asked
    app.url_map.converters["int"] = Number


def host_of(origin: str) -> str | None:
    """The host (and port) that an Origin names; None if it names none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:  # brackets that hold no address
        return None


def timings(text: str) -> dict[str, Any] | None:
    """What a page measured; anything else than a small, sound JSON object is left out."""
    if len(text) > MAX_TIMINGS:
        return None
    try:
        found = json.loads(text, parse_constant=lambda word: None)
        # What cannot be written again (numbers beyond all bounds, halves of letters) is not stored.
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def milliseconds(value: Any) -> float | None:
    """A duration that somebody may have taken."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e9 and math.isfinite(value) else None
