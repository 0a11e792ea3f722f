"""Hostile requests: headers, hosts, cookies, tokens, redirects, injections."""

from __future__ import annotations

import http.client
import inspect
import math
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from server.app import create_app
from server.auth import sessions
from server.auth.passwords import set_password
from server.collection import assignment, service
from server.collection.entry import filled
from server.study import validation
from server.views.headers import SAFE
from tests.support.experimenter_client import (
    PASSWORD,
    Hand,
    application,
    csrf,
    csrf_token,
    guarded_study,
    post,
    sign_in,
)
from tests.support.live_server import LiveServer, write_study
from tests.support.participant_client import SETTINGS, finish, taking_part
from tests.support.request_fuzzer import spoken
from tests.support.study_folders import small_study, write

ROOT = Path(__file__).parents[3]
EVIL = "elsewhere.example"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def app(tmp_path):
    made = application(guarded_study(tmp_path / "words", SETTINGS))
    yield made
    for served in made.extensions["studies"].values():
        served.database.close()


# ---- headers ------------------------------------------------------------------------------------


def test_every_response_carries_the_safe_headers(app):
    client = app.test_client()
    asked = {
        ("GET", "/health"): 200,
        ("HEAD", "/s/words/"): 303,
        ("OPTIONS", "/s/words/"): 200,
        ("GET", "/s/words"): 308,
        ("GET", "/s/nowhere/"): 404,
        ("GET", "/nowhere"): 404,
        ("PUT", "/s/words/"): 405,
        ("PUT", "/static/participant.css"): 405,
        ("POST", "/s/words/p/x/answer"): 404,
        ("POST", "/s/words/p/x/begin"): 404,
        ("GET", "/static/participant.css"): 200,
        ("HEAD", "/static/participant.css"): 200,
        ("GET", "/static/nothing.css"): 404,
        ("GET", "/monitor/"): 200,
        ("GET", "/monitor/words/"): 303,
        ("GET", "/monitor/words/data"): 401,
        ("POST", "/monitor/words/links"): 401,
        ("POST", "/monitor/sign-in"): 403,
        ("DELETE", "/monitor/words/links"): 405,
    }
    replies = [(*one, status, client.open(one[1], method=one[0])) for one, status in asked.items()]
    path = "/s/words/p/x/answer"
    replies.append(("POST", path, 400, client.post(path, data={"side": "up"})))
    for method, path, status, reply in replies:
        assert reply.status_code == status, (method, path)
        assert set(SAFE) <= set(reply.headers.keys()), (method, path)
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert "unsafe" not in reply.headers["Content-Security-Policy"]
        reply.close()
    large = client.post("/s/words/p/x/feedback", data={"text": "x" * 70_000})
    assert large.status_code == 413 and set(SAFE) <= set(large.headers.keys())
    css = client.get("/static/participant.css")
    known = client.get("/static/participant.css", headers={"If-None-Match": css.headers["ETag"]})
    assert known.status_code == 304 and set(SAFE) <= set(known.headers.keys())
    assert known.headers["Cache-Control"] != "no-store", "browsers would forget the file"
    css.close()
    known.close()


def test_errors_of_the_server_itself_carry_them_too(tmp_path):
    server = LiveServer(write_study(tmp_path / "words"))
    for raw in (b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 33_000 + b"\r\n\r\n"):
        heard = spoken(server.port, raw, wait=60.0).decode().lower()
        assert re.match(r"http/1\.[01] 4\d\d ", heard)
        for name in SAFE:
            assert f"\r\n{name.lower()}: " in heard
        assert "sandbox" in heard and "text/plain" in heard
    server.close()


TROUBLE = """
import socket, sys, threading, urllib.request, urllib.error
from pathlib import Path
from server.app import create_app
from server.clock import now
from server.processes.web_process import run
app = create_app([Path(sys.argv[1])], now)
app.add_url_rule("/boom", view_func=lambda: {}["the secret place"])
listener = socket.create_server(("127.0.0.1", 0))
stop = threading.Event()
thread = threading.Thread(target=run, args=(app, listener, stop))
thread.start()
try:
    urllib.request.urlopen(f"http://127.0.0.1:{listener.getsockname()[1]}/boom")
except urllib.error.HTTPError as error:
    print(error.code, error.headers["Content-Security-Policy"] is not None, error.read().decode())
stop.set()
thread.join()
app.extensions["studies"]["words"].database.close()
"""


def test_an_internal_error_is_logged_once_and_never_shown(tmp_path):
    folder = write_study(tmp_path / "words")
    result = subprocess.run(
        [sys.executable, "-c", TROUBLE, str(folder)], capture_output=True, text=True, cwd=ROOT
    )
    assert result.stdout.startswith("500 True ")
    assert "Please try again" in result.stdout
    for inside in ("Traceback", "KeyError", "secret place", "File"):
        assert inside not in result.stdout
    assert result.stderr.count("Traceback (most recent call last)") == 1
    assert result.stderr.count("KeyError: 'the secret place'") == 1


# ---- hosts and addresses ------------------------------------------------------------------------


def test_a_request_names_one_host(tmp_path):
    server = LiveServer(write_study(tmp_path / "words"))
    for lines, status in (
        (b"HTTP/1.1\r\nHost: a.example\r\n", 200),
        (b"HTTP/1.1\r\nhost:a.example\r\n", 200),
        (b"HTTP/1.1\r\n", 400),
        (b"HTTP/1.1\r\nHost:\r\n", 400),
        (b"HTTP/1.1\r\nX-Host: a.example\r\n", 400),
        (b"HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n", 400),
        (b"HTTP/1.1\r\nHost: a.example\r\nX: y\r\nhOsT:  a.example\r\n", 400),
        # It knew no hosts, and health checks of load balancers still speak it.
        (b"HTTP/1.0\r\n", 200),
        (b"HTTP/1.0\r\nHost: a.example\r\n", 200),
        (b"HTTP/1.0\r\nHost: a.example\r\nHost: b.example\r\n", 400),
    ):
        heard = spoken(server.port, b"GET /health " + lines + b"Connection: close\r\n\r\n")
        assert int(heard.split(b" ")[1]) == status, lines
        # What follows a refused request on the same line is never read as another one.
        if status == 400:
            assert heard.count(b"HTTP/1.") == 1
    server.close()


FORWARDED = {
    "X-Forwarded-Host": EVIL,
    "X-Forwarded-Server": EVIL,
    "X-Host": EVIL,
    "Forwarded": f"for=203.0.113.7;host={EVIL};proto=https",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "203.0.113.7",
    "X-Forwarded-Prefix": f"//{EVIL}",
    "X-Script-Name": f"//{EVIL}",
}


@pytest.mark.parametrize("host", ["localhost", EVIL, f"{EVIL}:99", f"localhost@{EVIL}"])
def test_no_url_is_built_from_the_request(app, host):
    client = app.test_client()
    headers = {**FORWARDED, "Host": host}
    for path in ("/s/words", "/s/words/", "/monitor", "/monitor/words", "/monitor/words/", "/x"):
        reply = client.get(path, headers=headers)
        assert EVIL not in reply.text
        location = reply.headers.get("Location", "/")
        assert location.startswith("/") and not location.startswith("//"), location
        assert EVIL not in str(reply.headers)


def test_view_only_links_name_no_host(app):
    client = app.test_client()
    sign_in(client, "words")
    form = {"csrf": csrf(client, "words"), "label": "the wall"}
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    headers = {"Host": EVIL, "Cookie": f"lore_monitor_words={token}", **FORWARDED}
    plain = app.test_client(use_cookies=False)
    reply = plain.post("/monitor/words/links", data=form, headers=headers)
    assert reply.json["address"].startswith("/monitor/words/view/")


@pytest.mark.parametrize("path", ["//elsewhere.example/s/words", "/\\elsewhere.example", "///x"])
def test_redirects_stay_here(app, path):
    reply = app.test_client().get("/", environ_overrides={"PATH_INFO": path})
    location = reply.headers.get("Location", "/")
    assert re.match(r"/[^/\\]|/$", location)


@pytest.mark.parametrize("proxy", ["", "127.0.0.1"])
def test_only_the_named_proxy_is_believed(tmp_path, proxy):
    server = LiveServer(guarded_study(tmp_path / "words"), proxy=proxy)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/s/words/", headers=FORWARDED)
    reply = connection.getresponse()
    reply.read()
    cookie = reply.headers["Set-Cookie"]
    # By TLS, says the proxy; anybody else may say so, and nothing changes.
    assert ("Secure" in cookie) == bool(proxy)
    assert EVIL not in reply.headers["Location"]
    connection.close()
    server.close()


def test_behind_a_proxy_wrong_passwords_count_for_who_sent_them(tmp_path):
    server = LiveServer(guarded_study(tmp_path / "words"), proxy="127.0.0.1")

    def attempt(address, password):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        said = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
        connection.request("GET", "/monitor/", headers=said)
        reply = connection.getresponse()
        token = re.search(r'name="csrf" value="([^"]+)"', reply.read().decode())[1]
        form = urlencode({"csrf": token, "study": "words", "password": password})
        said |= {"Cookie": reply.headers["Set-Cookie"].split(";")[0]}
        said |= {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/monitor/sign-in", form, said)
        status = connection.getresponse().status
        connection.close()
        return status

    statuses = [attempt("203.0.113.7", "wrong password") for _ in range(6)]
    assert statuses == [403] * 5 + [429]
    assert attempt("203.0.113.8", PASSWORD) == 303
    server.close()


# ---- forged requests, cookies, tokens -----------------------------------------------------------

FOREIGN = [
    *(
        {"Origin": one}
        for one in ("null", f"https://{EVIL}", f"http://localhost.{EVIL}", "http://[")
    ),
    *({"Origin": one} for one in ("http://localhost:81", "localhost", "file://", "", "x://")),
    {"Origin": f"http://localhost@{EVIL}"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
    {"Sec-Fetch-Site": "x"},
    {"Origin": f"https://{EVIL}", **FORWARDED},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_forms_from_elsewhere_are_refused(app, headers):
    client = app.test_client()
    sign_in(client, "words")
    token = csrf(client, "words")
    refused = client.post("/monitor/words/control/pause", data={"csrf": token}, headers=headers)
    assert refused.status_code == 403
    with_token = {"csrf": csrf_token(client), "study": "words", "password": PASSWORD}
    reply = app.test_client().post("/monitor/sign-in", data=with_token, headers=headers)
    assert reply.status_code == 403
    # Without either header, as older browsers send it, the token decides.
    assert post(client, "words", "control/pause").status_code == 200


def test_signing_in_accepts_no_token_chosen_by_another(app):
    client = app.test_client()
    client.set_cookie("lore_sign_in", "chosen-by-another-site", path="/monitor")
    assert csrf_token(client) != "chosen-by-another-site"
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", csrf_token(client))


def test_a_session_is_never_one_chosen_by_another(app):
    client = app.test_client()
    client.set_cookie("lore_monitor_words", "chosen", path="/monitor")
    sign_in(client, "words")
    assert client.get_cookie("lore_monitor_words", path="/monitor").value != "chosen"
    other = app.test_client()
    other.set_cookie("lore_monitor_words", "chosen", path="/monitor")
    assert other.get("/monitor/words/").status_code == 303
    visitor = app.test_client()
    visitor.set_cookie("lore", "chosen", path="/s/words/")
    location = visitor.get("/s/words/").headers["Location"]
    assert "chosen" not in location
    assert visitor.get_cookie("lore", path="/s/words/").value == location.rsplit("/", 1)[1]


def test_a_changed_cookie_is_worth_nothing(app):
    client = app.test_client()
    sign_in(client, "words")
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    came = client.get("/s/words/").headers["Location"].rsplit("/", 1)[1]
    for at in range(len(token)):
        wrong = token[:at] + ("a" if token[at] != "a" else "b") + token[at + 1 :]
        client.set_cookie("lore_monitor_words", wrong, path="/monitor")
        assert client.get("/monitor/words/").status_code == 303
    for wrong in (came[:-1], came + "a", came.swapcase(), came + "%00", " " + came):
        assert app.test_client().get(f"/s/words/p/{wrong}").status_code == 404


def test_tokens_cannot_be_guessed(app):
    """Each holds 128 bits or more of the system's chance; links and sessions are kept as hashes."""
    client = app.test_client()
    sign_in(client, "words")
    seen = {client.get_cookie("lore_monitor_words", path="/monitor").value}
    participants = set()
    for _ in range(50):
        came = app.test_client().get("/s/words/").headers["Location"].rsplit("/", 1)[1]
        participants.add(came)
        seen.add(post(client, "words", "links").json["address"].rsplit("/", 1)[1])
    assert len(participants) == 50 and len(seen) == 51
    for token in participants | seen:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token)
        assert len(token) * math.log2(64) >= 128
    for module in (sessions, service, assignment):
        source = inspect.getsource(module)
        assert "secrets.token_urlsafe" in source
        assert not re.search(r"(?<!np\.)\brandom\.|uuid", source)


def test_secrets_are_compared_in_constant_time_or_by_their_hash():
    """What a guesser could time is a digest's comparison, never that of the secret itself."""
    guard = (ROOT / "server" / "views" / "access.py").read_text()
    passwords = (ROOT / "server" / "auth" / "passwords.py").read_text()
    access = inspect.getsource(sessions)
    assert "hmac.compare_digest(token.encode()" in guard
    assert "hmac.compare_digest(digest, known)" in passwords
    for name in ("session", "end_session", "link_is_good"):
        used = re.findall(rf"access\.{name}\(c, (\w+)", access)
        assert used and set(used) <= {"key", "hashed"}, name


# ---- ways out -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *("@elsewhere.example", "//elsewhere.example/", "javascript:alert(1)", "..%2f..%2f", "#x"),
        *("&cc=STOLEN", "x\r\nSet-Cookie: a=b", "\"><script>alert(1)</script>", "[x]", "é\u202e"),
    ],
)  # fmt: skip
def test_exits_lead_where_the_study_says(app, value):
    client, action, page = taking_part(app, f"?PROLIFIC_PID={quote(value)}&x=1")
    done = finish(client, action, page)
    if 'name="text"' in done.text:
        done = client.post(f"{action}/feedback", data={"text": SCRIPT}, follow_redirects=True)
    assert "C1" in done.text
    address = re.search(r'href="(https?:[^"]+)"', done.text)[1].replace("&amp;", "&")
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "panel.example", "/done")
    asked = parse_qs(parts.query, keep_blank_values=True)
    assert asked == {"pid": [value], "x": ["1"]} and parts.fragment == ""
    assert "<script>alert" not in done.text


@pytest.mark.parametrize(
    "template",
    [
        *("https://[x]/", "https://example.org[x]/", "[x]://example.org/", "https://[x].example/"),
        *("https://example.org:[x]/", "https://a@[x]/", "//example.org/[x]", "javascript:[x]"),
        *("data:text/html,[x]", "https:/\\example.org/", "https://example.org\\@evil.example/"),
    ],
)
def test_templates_that_let_a_link_choose_the_host_are_refused(template):
    assert not validation.ADDRESS.fullmatch(template)


def test_parameters_are_filled_in_once():
    """A value that looks like another placeholder stays what it is."""
    entry = {"a": "[b]", "b": "[a]"}
    assert filled("https://e.org/?a=[a]&b=[b]", entry) == "https://e.org/?a=%5Bb%5D&b=%5Ba%5D"


# ---- injections ---------------------------------------------------------------------------------


def test_item_texts_ids_and_comments_are_shown_not_run(tmp_path):
    items = "key,text,label,alt\n" + "".join(
        f'k{at},"{SCRIPT} {at}","<img src=x onerror=alert({at})>","""><b>{at}</b>"\n'
        for at in range(5)
    )
    folder = small_study(tmp_path / "words", 'stimuli.list = "items.csv"\n' + SETTINGS)
    write(folder, {"items.csv": items})
    text = (folder / "study.toml").read_text().replace('"Words"', f"'{SCRIPT}{{{{7*7}}}}'")
    (folder / "study.toml").write_text(text)
    set_password(folder, PASSWORD)
    app = create_app([folder], Hand())
    client, action, page = taking_part(app, f"?PROLIFIC_PID={SCRIPT}")
    pages = [page.text, finish(client, action, page).text]
    sign_in(client, "words", who=SCRIPT)
    post(client, "words", "links", label=SCRIPT)
    post(client, "words", "control/stop", reason=SCRIPT)
    pages += [client.get("/monitor/words/").text, client.get("/monitor/").text]
    pages += [client.get(f"/monitor/?study={SCRIPT}").text]
    for text in pages:
        assert "<script>alert" not in text and "<img src=x" not in text and "<b>" not in text
        assert "49" not in re.sub(r"\d{3,}|[\w-]{9,}", "", text), "a template ran a title"
    assert "&lt;script&gt;" in pages[0]
    for path in ("data", "items", "links"):
        reply = client.get(f"/monitor/words/{path}")
        assert reply.mimetype == "application/json", path
    app.extensions["studies"]["words"].database.close()


def test_exports_are_files_and_never_pages(app):
    client = app.test_client()
    sign_in(client, "words")
    page = client.get("/monitor/words/").text
    names = re.findall(r'/export/([\w.]+)"', page)
    assert len(names) >= 4
    for name in names:
        reply = client.get(f"/monitor/words/export/{name}")
        assert reply.headers["Content-Disposition"].startswith("attachment;")
        assert reply.mimetype in ("text/csv", "application/jsonl", "text/html", "application/zip")
