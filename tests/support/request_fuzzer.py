"""Generated requests for every route of the application: nearly right, plainly wrong, and hostile.

Everything is drawn from one seed, so that a request that found something comes again.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count as count_from
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus

from flask import Flask

METHODS = ("GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "x", "")
# Each has brought some server down, or has shown what it should not.
NASTY = (
    *("", " ", "0", "-1", "1e999", "NaN", "null", "None", "true", "[]", "{}", "%", "%00", "\x00"),
    *("\r\nX-Injected: 1", "\n", "\t", "'", '"', "' OR 1=1 --", "');DROP TABLE answers;--", "\\"),
    *("<script>alert(1)</script>", "{{ 7*7 }}", "{% raw %}", "${7*7}", "{done.__class__}", "%s%n"),
    *("../../../../etc/passwd", "..%2f..%2fstudy.db", "....//study.toml", "/etc/passwd", "C:\\"),
    *("..", ".", "//elsewhere.example/", "https://elsewhere.example/", "javascript:alert(1)"),
    *("=1+1", "@SUM(1)", "\ud800", "\udcff", "\uffff", "\u202e", "👩‍🚀", "ﷺ", "é" * 50, "a" * 3000),
    *(
        str(2**31),
        str(2**63),
        str(2**64),
        "9" * 400,
        "9" * 5000,
        "-" + "9" * 30,
        "1_0",
        "١٢",
        "0x10",
    ),
)
TIMINGS = (
    *("{}", "[]", "null", "{", '{"rt_ms": 12.5}', '{"rt_ms": -1}', '{"rt_ms": 1e999}'),
    *('{"rt_ms": NaN}', '{"rt_ms": true}', '{"rt_ms": "1"}', f'{{"rt_ms": {"9" * 400}}}'),
    *('{"away": "\\ud800"}', '{"\\u0000": 1}', '{"x": Infinity}', '{"x": 1e400}', '{"rt_ms": {}}'),
    *(f'{{"a": {"[" * depth}1{"]" * depth}}}' for depth in (50, 500, 990, 3000)),
    '{"a": ' * 1200,
)
FIELDS = {
    "csrf": ("x",),
    "study": ("words", "nowhere"),
    "password": ("wrong password", "correct horse battery"),
    "who": ("Ada",),
    "reason": ("because",),
    "answers": ("100", "0", "-5", "x"),
    "participants": ("0", "3", "-1"),
    "trials": ("7", "0", "5001"),
    "label": ("the wall",),
    "agreed": ("yes", "no"),
    "done": ("0", "3", "-1"),
    "text": ("thank you",),
    "side": ("left", "right", "skip", "timeout", "up"),
    "visit": ("1", "0", "99"),
    "timings": TIMINGS,
}
HEADERS = {
    "HOST": (
        "localhost",
        "elsewhere.example",
        "localhost:99999",
        "[::1",
        "a b",
        "",
        "@",
        "x" * 300,
    ),
    "HTTP_ORIGIN": ("null", "http://localhost", "https://elsewhere.example", "http://[", "x", ""),
    "HTTP_SEC_FETCH_SITE": ("same-origin", "cross-site", "none", "x"),
    "HTTP_X_FORWARDED_HOST": ("elsewhere.example",),
    "HTTP_X_FORWARDED_FOR": ("203.0.113.7", "x, y", "::"),
    "HTTP_X_FORWARDED_PROTO": ("https", "javascript"),
    "HTTP_X_HTTP_METHOD_OVERRIDE": ("DELETE",),
    "HTTP_X_ORIGINAL_URL": ("/monitor/words/",),
    "HTTP_REFERER": ("https://elsewhere.example/",),
    "HTTP_ACCEPT_ENCODING": ("gzip", "gzip;q=x", "*;q=0", ";;;", "identity, gzip;q=1e9"),
    "HTTP_ACCEPT": ("*/*", "text/html", "x" * 200),
    "HTTP_RANGE": ("bytes=0-3", "bytes=9-1", "bytes=-99999999999999999999", "bytes=0-,5-", "x=1"),
    "HTTP_IF_NONE_MATCH": ("*", '"x"', "W/", '"' * 9),
    "HTTP_IF_MODIFIED_SINCE": ("Thu, 01 Jan 1970 00:00:00 GMT", "x", "-1"),
    "HTTP_IF_RANGE": ("x", '"y"'),
    "HTTP_HX_REQUEST": ("true", ""),
    "HTTP_X_MONITOR": ("1", "0"),
    "HTTP_USER_AGENT": ("fuzz", "", "\xff" * 20, "x" * 4000),
    "HTTP_EXPECT": ("100-continue",),
    "HTTP_CONTENT_ENCODING": ("gzip",),
    "HTTP_AUTHORIZATION": ("Basic x", "Bearer \xff", "Digest a=b"),
}
SIGN_IN_TOKEN = "d" * 32
# They compare a password, or begin a process.
SLOW = ("/sign-in", "/effect")
TYPES = (
    *("application/x-www-form-urlencoded", "application/json", "text/plain", "", "x", "a/b; c"),
    *("application/x-www-form-urlencoded; charset=utf-7", "multipart/form-data"),
    *("multipart/form-data; boundary=b", 'multipart/form-data; boundary="' + "b" * 300),
)


@dataclass
class Known:
    """What a caller knows who is nearly allowed: live tokens of every kind."""

    study: str = "words"
    session: str = ""
    csrf: str = ""
    link: str = ""
    participant: str = ""
    question: str = ""
    stimulus: str = ""
    export: str = "answers.csv"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Fuzzer:
    """Draws requests for an application's routes and sends them."""

    app: Flask
    seed: int
    known: Known = field(default_factory=Known)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.rules = sorted(self.app.url_map.iter_rules(), key=lambda rule: rule.rule)
        self.reached: Counter[str] = Counter()
        self.succeeded: Counter[str] = Counter()

    def requests(
        self, count: int, refresh: Callable[[], Known], every: int = 50
    ) -> Iterator[tuple[str, dict[str, Any], Reply]]:
        """Send so many; each with its rule's name, its environment and its reply.

        What is known is asked for again now and then: requests sign people out and end studies.
        """
        turns = self._turns()
        for number in range(count):
            if number % every == 0:
                self.known = refresh()
            rule = next(turns)
            environ = self._environ(rule)
            reply = send(self.app, environ)
            name = f"{environ['REQUEST_METHOD']} {rule.rule}"
            self.reached[name] += 1
            if reply.status < 400:
                self.succeeded[name] += 1
            yield name, environ, reply

    def _turns(self) -> Iterator[Any]:
        """The routes in turn, again and again; those that take long by design, in one of three."""
        for number in count_from(0):
            for rule in self.rules:
                if number % 3 == 0 or not rule.rule.endswith(SLOW):
                    yield rule

    # ---- drawing --------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _value(self) -> str:
        if self._chance(0.8):
            return self.random.choice(NASTY)
        signs = self.random.choices(range(0x500), k=self.random.randrange(40))
        return "".join(map(chr, signs))

    def _environ(self, rule: Any) -> dict[str, Any]:
        own = sorted(rule.methods)
        method = self.random.choice(own if self._chance(0.85) else METHODS)
        kind, body = self._body(sign_in="sign-in" in rule.rule)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": _wire(self._path(rule)),
            "QUERY_STRING": _wire(self._query()) if self._chance(0.5) else "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self.random.choice(("127.0.0.1", "203.0.113.9", "2001:db8::1")),
            "HTTP_HOST": "localhost",
            "CONTENT_TYPE": kind,
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_COOKIE": self._cookies(),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }
        for name in self.random.sample(sorted(HEADERS), self.random.randrange(4)):
            value = self.random.choice(HEADERS[name]) if self._chance(0.8) else self._value()
            environ["HTTP_HOST" if name == "HOST" else name] = _wire(value)
        if self._chance(0.05):
            environ["CONTENT_LENGTH"] = self.random.choice(("-1", "x", "999999", "", "0"))
        return environ

    def _path(self, rule: Any) -> str:
        known = self.known
        filling = {
            "study": known.study,
            "token": known.participant if "/p/" in rule.rule else known.link,
            "name": known.export if "export" in rule.rule else known.stimulus,
            "action": self.random.choice(
                ("start", "pause", "resume", "stop", "reopen", "budget", "trials")
            ),
            "number": self.random.choice(("1", "2", "0")),
            "act": self.random.choice(("exclude", "restore")),
            "filename": "participant.css",
        }
        path = ""
        for dynamic, part in rule._trace:
            if not dynamic:
                path += part
            elif self._chance(0.85):
                path += filling.get(part, "x")
            else:
                path += self._value()
        path = path.removeprefix("|")
        if self._chance(0.05):
            path += self._value()
        return path

    def _query(self) -> str:
        names = ("PROLIFIC_PID", "SESSION_ID", "assignmentId", "id", "study", "after", "v", "=")
        return "&".join(
            f"{self.random.choice(names)}={_quoted(self._value(), self._chance(0.1))}"
            for _ in range(self.random.choice((1, 2, 3, 40)))
        )

    def _cookies(self) -> str:
        known, study = self.known, self.known.study
        cookies = {
            f"lore_monitor_{study}": known.session,
            f"lore_view_{study}": known.link,
            "lore_sign_in": SIGN_IN_TOKEN,
            "lore": known.participant,
        }
        parts = []
        for name, value in cookies.items():
            if self._chance(0.25):
                continue
            if self._chance(0.1):
                at = self.random.randrange(len(value) + 1)
                value = value[:at] + _quoted(self._value(), True) + value[at + 1 :]
            parts.append(f"{name}={value}")
        return _wire("; ".join(parts) if self._chance(0.95) else self._value())

    def _body(self, sign_in: bool) -> tuple[str, bytes]:
        if self._chance(0.75):
            return TYPES[0], self._form(sign_in)
        kind = self.random.choice(TYPES)
        if self._chance(0.3):
            return kind, self.random.randbytes(self.random.choice((0, 1, 100, 5000, 70_000)))
        if "multipart" in kind:
            return kind, self._multipart()
        return kind, self._form(sign_in) if self._chance(0.5) else json.dumps(
            [self._value()]
        ).encode()

    def _form(self, sign_in: bool) -> bytes:
        known = self.known
        held = {name: self.random.choice(values) for name, values in FIELDS.items()}
        held["csrf"] = SIGN_IN_TOKEN if sign_in else known.csrf
        held["question"] = known.question
        if not sign_in or self._chance(0.7):
            # Looking at a password takes a while by design.
            del held["password"]
        for name in list(held):
            if self._chance(0.08):
                held[name] = self._value()
            elif self._chance(0.04):
                del held[name]
        if self._chance(0.02):
            held |= {f"x{number}": "y" for number in range(1500)}
        pairs = (f"{name}={_quoted(value, self._chance(0.02))}" for name, value in held.items())
        return "&".join(pairs).encode("utf-8", "surrogatepass")

    def _multipart(self) -> bytes:
        parts = []
        for name in self.random.sample(sorted(FIELDS), 4):
            file = f'; filename="{self._value()}"' if self._chance(0.3) else ""
            parts.append(
                f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
                f"{self._value()}\r\n"
            )
        end = "--b--\r\n" if self._chance(0.7) else ""
        return ("".join(parts) + end).encode("utf-8", "surrogatepass")


@cache
def _quoted(value: str, raw: bool) -> str:
    return value if raw else quote_plus(value.encode("utf-8", "surrogatepass"))


def _wire(text: str) -> str:
    """As a server hands bytes on: each as one character."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def send(app: Flask, environ: dict[str, Any]) -> Reply:
    """One request, without a server in between that would straighten it."""
    begun: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], error: object = None) -> Any:
        begun.append((status, headers))
        return lambda data: None

    pieces = app(environ, start)
    try:
        body = b"".join(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
    status, headers = begun[-1]
    return Reply(int(status.split()[0]), headers, body)


def address_of(environ: dict[str, Any]) -> str:
    """The request line, for messages."""
    path = quote(environ["PATH_INFO"].encode("latin-1"))
    return f"{environ['REQUEST_METHOD']} {path}?{environ['QUERY_STRING'][:200]}"


def spoken(port: int, *parts: bytes, wait: float = 3.0) -> bytes:
    """What the server says to these bytes, until it closes or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as line:
        heard = b""
        # Hanging up in the middle is an answer, too; what was said before is still to be read.
        with contextlib.suppress(OSError):
            for part in parts:
                line.sendall(part)
            line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while piece := line.recv(65536):
                heard += piece
    return heard
