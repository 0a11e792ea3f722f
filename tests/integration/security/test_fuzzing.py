"""Ten thousand generated requests to every route, and bytes that are no requests at all.

No reply is an error of ours, none shows a traceback, all carry the safe headers, and the server
goes on serving.
"""

from __future__ import annotations

import http.client
import logging
import socket
import sqlite3
import time
from random import Random

import pytest

from server.auth.sessions import hashed
from server.store import access, collection
from server.study.items.display import items_by_name
from server.study.samples import png
from server.views.headers import SAFE
from tests.support.experimenter_client import Hand, application, guarded_study
from tests.support.live_server import LiveServer
from tests.support.request_fuzzer import Fuzzer, Known, address_of, spoken

REQUESTS = 10_000
SEED = 20_261_116
CSRF = "c" * 32
# What a page that shows its insides would have in it.
INSIDES = (b"Traceback", b'File "', b"site-packages", b"sqlite3.", b"werkzeug.")


def with_picture(folder):
    (folder / "stimuli" / "picture.png").write_bytes(png.patch(1, 2, 3, side=4))
    return folder


class Insider:
    """Gives the fuzzer live tokens, and opens again what its requests have shut."""

    def __init__(self, app, clock):
        self.app, self.clock, self.count = app, clock, 0
        self.served = app.extensions["studies"]["words"]
        self.access = app.extensions["access"]["words"]
        names = items_by_name(self.served.study)
        self.stimulus = next(name for name in names if name.endswith(".png"))

    def __call__(self) -> Known:
        self.count += 1
        self.clock.ms += 60_000
        session, service = f"session-{self.count}", self.served.service

        def open_again(c):
            access.add_session(c, hashed(session), "Ada", CSRF, self.access._lock(), self.clock.ms)
            collection.set_state(
                c, status="running", budget_answers=10**6, budget_participants=0, trials=5
            )

        self.served.database.write(open_again)
        came = service.arrive({})
        service.visit(came.token)
        if self.count % 4:
            service.consent(came.token, True)
        stage = service.begin(came.token)
        return Known(
            session=session,
            csrf=CSRF,
            link=self.access.make_link("Ada", "the wall"),
            participant=came.token,
            question=stage.trial.token if stage.trial else "x",
            stimulus=self.stimulus,
        )


def test_ten_thousand_requests_to_every_route(tmp_path, caplog):
    clock = Hand()
    app = application(with_picture(guarded_study(tmp_path / "words")), clock)
    fuzzer = Fuzzer(app, SEED)
    caplog.set_level(logging.WARNING)
    sent = 0
    for name, environ, reply in fuzzer.requests(REQUESTS, Insider(app, clock)):
        sent += 1
        where = f"{name}: {address_of(environ)}"
        assert reply.status < 500, where
        assert not any(inside in reply.body for inside in INSIDES), where
        headers = dict(reply.headers)
        assert set(SAFE) <= set(headers), where
        assert "X-Injected" not in headers, where
        location = headers.get("Location", "/")
        assert location.startswith("/") and not location.startswith("//"), where
    assert sent == REQUESTS
    assert caplog.records == [], "something was logged as an error or a warning"
    for rule in app.url_map.iter_rules():
        for method in rule.methods:
            assert fuzzer.reached[f"{method} {rule.rule}"] > 10, (method, rule)
        # The requests are signed in: they are not only rejected.
        own = rule.methods - {"OPTIONS"}
        assert any(fuzzer.succeeded[f"{method} {rule.rule}"] for method in own), rule
    app.extensions["studies"]["words"].database.close()
    database = sqlite3.connect(tmp_path / "words" / "study.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert database.execute("SELECT count(*) FROM answers").fetchone()[0] > 10
    database.close()


# ---- bytes over a real connection ---------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = LiveServer(with_picture(guarded_study(tmp_path_factory.mktemp("raw") / "words")))
    yield started
    started.close()


def serves(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/health")
    good = connection.getresponse().status == 200
    connection.close()
    return good


def well_formed(heard):
    assert not any(inside in heard for inside in INSIDES), heard[:500]
    for head in heard.split(b"HTTP/1.")[1:]:
        status = int(head.split(b" ", 2)[1])
        assert status < 500 or status == 501, heard[:200]
        assert b"x-content-type-options: nosniff" in head.lower(), heard[:500]
        assert b"content-security-policy:" in head.lower(), heard[:500]


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /monitor/sign-in HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = b"GET /static/participant.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
NO_REQUESTS = {
    "nothing": b"",
    "line ends": b"\r\n" * 500,
    "NUL": b"\0" * 2000,
    "NUL in the address": b"GET /s/wor\0ds/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "NUL in a header": HEAD + b"X: a\0b\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "version 9": b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "version of letters": b"GET /health HTTP/x.y\r\n\r\n",
    "no method": b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a method of signs": b"\x80\xff{} /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\x11" * 190,
    "an address elsewhere": b"GET http://elsewhere.example/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "a broken address": b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a star": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "connect": b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a way up": b"GET /static/../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a way up, encoded": b"GET /static/..%2f..%2fpyproject.toml HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes in the query": b"GET /s/words/?id=\xed\xa0\x80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bytes in the address": b"GET /s/\xff\xfe/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long address": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": HEAD + b"X: " + b"a" * 300_000 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"X%d: y\r\n" % one for one in range(20_000)) + b"\r\n",
    "a header without a name": HEAD + b": x\r\n\r\n",
    "a header with a space": HEAD + b"X : x\r\n\r\n",
    "a folded header": HEAD + b"X: a\r\n b\r\n\r\n",
    "a host of signs": b"GET /s/words HTTP/1.1\r\nHost: [::1\r\n\r\n",
    "a long host": b"GET /s/words HTTP/1.1\r\nHost: " + b"x" * 300 + b"\r\n\r\n",
    "no host": b"GET /s/words HTTP/1.1\r\n\r\n",
    "length of letters": POST + b"Content-Length: x\r\n\r\n",
    "length below zero": POST + b"Content-Length: -5\r\n\r\nabc",
    "length with a sign": POST + b"Content-Length: +3\r\n\r\nabc",
    "length beyond all bounds": POST + b"Content-Length: 99999999999999999999\r\n\r\nabc",
    "a length of thousands of digits": POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nabc",
    "less than announced": POST + b"Content-Length: 500\r\n\r\nabc",
    "a body that is too large": POST + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000,
    "chunks of letters": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "a huge chunk": POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
    "another encoding": POST + b"Transfer-Encoding: gzip, identity\r\n\r\nabc",
}
SMUGGLED = {
    "length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 70\r\n\r\n" + HIDDEN,
    "a list of lengths": POST + b"Content-Length: 0, 70\r\n\r\n" + HIDDEN,
    "chunked in disguise": POST
    + b"Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "a bare line end": POST + b"X: a\nContent-Length: 70\r\n\r\n" + HIDDEN,
    "a name with a space": POST + b"Content-Length : 70\r\n\r\n" + HIDDEN,
}  # fmt: skip


@pytest.mark.parametrize("what", NO_REQUESTS)
def test_malformed_bytes_get_an_error_response(server, what):
    well_formed(spoken(server.port, NO_REQUESTS[what]))
    assert serves(server)


@pytest.mark.parametrize("what", SMUGGLED)
def test_no_second_request_hides_in_a_first(server, what):
    """Where two readers could disagree about its end, a request is refused and the line closed."""
    heard = spoken(server.port, SMUGGLED[what])
    well_formed(heard)
    assert b"text/css" not in heard
    assert serves(server)


def test_requests_with_bytes_changed(server):
    random = Random(SEED)
    good = (
        b"POST /s/words/p/abc/answer?x=1 HTTP/1.1\r\nHost: localhost\r\nCookie: lore=x; a=b\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30\r\n\r\n"
        b"side=left&question=a&visit=3&x"
    )
    for _ in range(150):
        raw = bytearray(good)
        for _ in range(random.randrange(1, 8)):
            at = random.randrange(len(raw))
            act = random.randrange(3)
            if act == 0:
                raw[at] = random.randrange(256)
            elif act == 1:
                del raw[at : at + random.randrange(1, 20)]
            else:
                raw[at:at] = random.randbytes(random.randrange(1, 9))
        well_formed(spoken(server.port, bytes(raw), wait=1.0))
    assert serves(server)


def test_participants_are_served_while_hundreds_of_connections_are_half_open(server):
    held = []
    try:
        for number in range(300):
            line = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            line.sendall(HEAD[: 10 + number % 30])
            held.append(line)
        begun = time.monotonic()
        assert all(serves(server) for _ in range(10))
        # Far below the minute after which such lines are cut.
        assert time.monotonic() - begun < 30
    finally:
        for line in held:
            line.close()
    assert serves(server)
