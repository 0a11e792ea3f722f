"""Validate and bound incoming requests before any view reads them."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import quote, urlsplit

from flask import Flask, Request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import UnsupportedMediaType
from werkzeug.routing import IntegerConverter, Map

from lore_active.questions.kinds import MAX_OPTIONS, TRIPLET, Kind
from server.collection.screens import Response as Answer

MAX_REQUEST_BYTES = 64 * 1024
# No row has a higher number, and SQLite's integers are bounded.
MAX_NUMBER = 2**53
MAX_TIMINGS = 8000
# Values of an answer's fields; only triplets have sides.
SIDES: dict[str, Answer] = {"left": (0,), "right": (1,)}
WITHOUT_CHOICE: dict[str, Answer] = {"skip": "skip", "timeout": "timeout"}
POSITIONS = {str(position): position for position in range(MAX_OPTIONS)}
# Printable characters stay as they are: quoting them again would change what they mean.
PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


# Made once: with every answer, that would take longer than their work.
_DECODER = json.JSONDecoder(parse_constant=lambda constant: None)
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


class BoundedRequest(Request):
    """A request without file uploads, whose query consists of printable ASCII only.

    Other characters are percent-encoded, because Werkzeug assumes that a query is valid UTF-8.
    """

    def __init__(self, environ: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        query = environ.get("QUERY_STRING", "")
        if not (query.isascii() and query.isprintable()):
            environ["QUERY_STRING"] = quote(query.encode("latin-1", "replace"), safe=PRINTABLE)
        super().__init__(environ, *args, **kwargs)

    def _get_file_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedMediaType


class Number(IntegerConverter):
    """Converter for a whole number in a URL."""

    def __init__(self, map: Map, *args: Any, **kwargs: Any) -> None:
        super().__init__(map, *args, **{"max": MAX_NUMBER, **kwargs})


def bound(app: Flask) -> None:
    """Install the bounds in an application, before its routes are registered."""
    app.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST_BYTES
    app.request_class = BoundedRequest
    app.url_map.converters["int"] = Number


def host_of(origin: str) -> str | None:
    """Host (and port) of an Origin header; None if it has none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:  # brackets around something that is not an IPv6 address
        return None


def response(form: MultiDict[str, str], kind: Kind) -> Answer | None:
    """Parse the choice on a trial: a side, or positions in the order of choice; None if neither.

    Lists from which nothing was chosen are left out. How many must be chosen is not checked.
    """
    side = form.get("side")
    if side is not None:
        return (SIDES | WITHOUT_CHOICE if kind == TRIPLET else WITHOUT_CHOICE).get(side)
    chosen = [value for value in form.getlist("chosen") if value]
    if not set(chosen) <= POSITIONS.keys():
        return None
    return tuple(POSITIONS[value] for value in chosen)


def timings(text: str) -> dict[str, Any] | None:
    """Parse a page's timings; None for anything but a small, valid JSON object."""
    if len(text) > MAX_TIMINGS:
        return None
    try:
        value = _DECODER.decode(text)
        # Values that cannot be serialised again (infinities, lone surrogates) are not stored.
        _ENCODER.encode(value).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def milliseconds(value: Any) -> float | None:
    """A plausible duration in milliseconds; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e9 and math.isfinite(value) else None
