"""Hostile people and files at the doors: headers, hosts, cookies, tokens, redirects, injections."""

from __future__ import annotations

import gzip
import http.client
import inspect
import io
import math
import re
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from lore_active import sense
from server import exporting, issuing, security, service
from server.app import create_app
from server.entry import filled
from server.headers import SAFE, SHUT
from server.log import lines
from server.opening import open_study
from server.passwords import set_password
from server.store.database import Database
from tests.fuzzing import spoken
from tests.living import LiveServer, write_study
from tests.studies import SOUND_FILES, only, small_study, write
from tests.watching import PASSWORD, Hand, application, csrf, door, guarded_study, post, sign_in

ROOT = Path(__file__).parent.parent
EVIL = "elsewhere.example"
SCRIPT = "<script>alert(1)</script>"

SETTINGS = """
[session]
trials = 4
practice = 0
break_every = 0
[completion]
code = "C1"
redirect = "https://panel.example/done?pid=[PROLIFIC_PID]&x=[x]"
"""


@pytest.fixture
def app(tmp_path):
    made = application(guarded_study(tmp_path / "words", SETTINGS))
    yield made
    for served in made.extensions["studies"].values():
        served.database.close()


def taking_part(app, query=""):
    """A client at the first question, and the question's page."""
    client = app.test_client()
    page = client.get(f"/s/words/{query}", follow_redirects=True)
    action = re.search(r'action="([^"]+)/consent"', page.text)[1]
    client.post(f"{action}/consent", data={"agreed": "yes"})
    return client, action, client.post(f"{action}/begin", follow_redirects=True)


def finish(client, action, page):
    while 'name="question"' in page.text:
        question = re.search(r'name="question" value="([^"]+)"', page.text)[1]
        page = client.post(
            f"{action}/answer", data={"question": question, "side": "left"}, follow_redirects=True
        )
    return page


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
        ("POST", "/s/words/p/x/answer"): 400,
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
    for (method, path), status in asked.items():
        reply = client.open(path, method=method)
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
    for raw in (b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 99_999 + b"\r\n\r\n"):
        heard = spoken(server.port, raw).decode().lower()
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
from server.web import run
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


def test_an_error_of_ours_is_logged_once_and_shown_to_nobody(tmp_path):
    folder = write_study(tmp_path / "words")
    told = subprocess.run(
        [sys.executable, "-c", TROUBLE, str(folder)], capture_output=True, text=True, cwd=ROOT
    )
    assert told.stdout.startswith("500 True ")
    assert "Please try again" in told.stdout
    for inside in ("Traceback", "KeyError", "secret place", "File"):
        assert inside not in told.stdout
    assert told.stderr.count("Traceback (most recent call last)") == 1
    assert told.stderr.count("KeyError: 'the secret place'") == 1


# ---- hosts and addresses ------------------------------------------------------------------------

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
def test_no_address_comes_from_the_request(app, host):
    client = app.test_client()
    headers = {**FORWARDED, "Host": host}
    for path in ("/s/words", "/s/words/", "/monitor", "/monitor/words", "/monitor/words/", "/x"):
        reply = client.get(path, headers=headers)
        assert EVIL not in reply.text
        location = reply.headers.get("Location", "/")
        assert location.startswith("/") and not location.startswith("//"), location
        assert EVIL not in str(reply.headers)


def test_links_for_looking_name_no_host(app):
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
    at_the_door = {"csrf": door(client), "study": "words", "password": PASSWORD}
    reply = app.test_client().post("/monitor/sign-in", data=at_the_door, headers=headers)
    assert reply.status_code == 403
    # Without either header, as older browsers send it, the token decides.
    assert post(client, "words", "control/pause").status_code == 200


def test_the_door_takes_no_token_that_somebody_else_chose(app):
    client = app.test_client()
    client.set_cookie("lore_door", "chosen-by-another-site", path="/monitor")
    assert door(client) != "chosen-by-another-site"
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", door(client))


def test_a_session_is_never_one_that_somebody_else_chose(app):
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
    people = set()
    for _ in range(50):
        came = app.test_client().get("/s/words/").headers["Location"].rsplit("/", 1)[1]
        people.add(came)
        seen.add(post(client, "words", "links").json["address"].rsplit("/", 1)[1])
    assert len(people) == 50 and len(seen) == 51
    for token in people | seen:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token)
        assert len(token) * math.log2(64) >= 128
    for module in (security, service, issuing):
        source = inspect.getsource(module)
        assert "secrets.token_urlsafe" in source
        assert not re.search(r"(?<!np\.)\brandom\.|uuid", source)


def test_secrets_are_compared_in_constant_time_or_by_their_hash():
    """What a guesser could time is a digest's comparison, never that of the secret itself."""
    guard = (ROOT / "server" / "views" / "guard.py").read_text()
    passwords = (ROOT / "server" / "passwords.py").read_text()
    access = inspect.getsource(security)
    assert "hmac.compare_digest(given.encode()" in guard
    assert "hmac.compare_digest(digest, known)" in passwords
    for name in ("session", "end_session", "link_is_good"):
        used = re.findall(rf"store\.{name}\(c, (\w+)", access)
        assert used and set(used) <= {"key", "hashed"}, name


# ---- ways out -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *("@elsewhere.example", "//elsewhere.example/", "javascript:alert(1)", "..%2f..%2f", "#x"),
        *("&cc=STOLEN", "x\r\nSet-Cookie: a=b", "\"><script>alert(1)</script>", "[x]", "é\u202e"),
    ],
)  # fmt: skip
def test_ways_out_lead_where_the_study_says(app, value):
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
    assert not sense.ADDRESS.fullmatch(template)


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


# ---- files --------------------------------------------------------------------------------------

PAGE = b"<html><script>alert(document.domain)</script></html>"
POLYGLOTS = {
    "gif.gif": SOUND_FILES[".gif"][:10] + b"/*" + PAGE + b"*/=1;",
    "png.png": SOUND_FILES[".png"] + PAGE,
    "jpg.jpg": SOUND_FILES[".jpg"] + PAGE,
    "mp3.mp3": b"ID3" + PAGE,
    "wav.wav": SOUND_FILES[".wav"] + PAGE,
    "mp4.mp4": SOUND_FILES[".mp4"] + PAGE,
    "webp.webp": SOUND_FILES[".webp"] + PAGE,
}


def test_a_file_that_is_also_a_page_is_only_the_file(tmp_path):
    files = {f"stimuli/{name}": content for name, content in POLYGLOTS.items()}
    folder = write(tmp_path / "words", {"study.toml": 'title = "All"', **files})
    app = create_app([folder], Hand())
    served = app.extensions["studies"]["words"]
    assert len(served.faces.files) == len(POLYGLOTS)
    for name in served.faces.files:
        reply = app.test_client().get(f"/s/words/stimulus/{name}")
        assert reply.status_code == 200
        assert reply.mimetype.partition("/")[0] in ("image", "audio", "video")
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Content-Security-Policy"] == SHUT
        reply.close()
    served.database.close()


@pytest.mark.parametrize("name", ["x.svg", "x.html", "x.htm", "x.xml", "x.xhtml", "x.pdf", "x.zip"])
def test_files_that_can_hold_scripts_are_no_stimuli(tmp_path, name):
    assert "stimuli must end in one of" in only(
        small_study(tmp_path / "words", **{f"stimuli/{name}": PAGE})
    )


def test_a_file_swapped_for_a_link_while_serving_is_not_sent(tmp_path):
    folder = small_study(tmp_path.resolve() / "words", **{"stimuli/x.png": SOUND_FILES[".png"]})
    (tmp_path / "secret.png").write_bytes(b"secret")
    app = create_app([folder], Hand())
    client, served = app.test_client(), app.extensions["studies"]["words"]
    (name,) = served.faces.files
    with client.get(f"/s/words/stimulus/{name}") as reply:
        assert reply.status_code == 200
    (folder / "stimuli" / "x.png").unlink()
    assert client.get(f"/s/words/stimulus/{name}").status_code == 404
    (folder / "stimuli" / "x.png").symlink_to(tmp_path / "secret.png")
    assert client.get(f"/s/words/stimulus/{name}").status_code == 404
    served.database.close()


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../server/app.py", "/static/%2e%2e/server/app.py", "/static/..\\server\\app.py"),
        *("/static//etc/passwd", "/static/vendor/../../pyproject.toml", "/static/.", "/static/"),
        *("/s/words/stimulus/../study.toml", "/s/words/stimulus/..%2fstudy.db", "/s/../study.db"),
        *("/s/words/stimulus/word00.txt", "/s/words/study.db", "/s/words/password", "/study.db"),
        *("/monitor/words/export/../../study.db", "/monitor/words/export/%2e%2e%2fpassword"),
        "/s/words/stimulus/" + "../" * 20 + "etc/passwd",
    ],
)
def test_no_path_leads_out(app, path):
    reply = app.test_client().get(path)
    assert reply.status_code in (303, 308, 404)
    assert b"root:" not in reply.data and b"scrypt" not in reply.data


def test_nothing_is_uploaded(app):
    """No route takes a file: there is nothing to unpack, and no name to write to."""
    client, action, _ = taking_part(app)
    for path in ("consent", "begin", "feedback", "answer"):
        form = {"text": (io.BytesIO(b"PK\x03\x04"), "../../evil.zip"), "agreed": "yes"}
        reply = client.post(f"{action}/{path}", data=form, content_type="multipart/form-data")
        assert reply.status_code in (303, 415)
    for module in (ROOT / "server").rglob("*.py"):
        text = module.read_text()
        assert "request.files" not in text
        assert not re.search(r"import (zipfile|tarfile|pickle|shelve|marshal|yaml)\b", text), module
        assert not re.search(r"unpack_archive|extractall|\beval\(|\bexec\(|shell=True", text), (
            module
        )


def test_a_bomb_in_a_request_is_not_unpacked(app):
    client, action, _ = taking_part(app)
    bomb = gzip.compress(b"text=" + b"x" * 50_000_000)
    assert len(bomb) < 64 * 1024
    reply = client.post(
        f"{action}/feedback",
        data=bomb,
        headers={"Content-Encoding": "gzip"},
        content_type="application/x-www-form-urlencoded",
    )
    assert reply.status_code in (200, 303, 400)
    deep = '{"a":' * 1300 + "1" + "}" * 1300
    assert (
        client.post(f"{action}/answer", data={"side": "left", "timings": deep}).status_code == 404
    )


# ---- what lies on the disk ----------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_studys_data_is_its_owners_alone(tmp_path):
    folder = guarded_study(tmp_path / "words")
    study, database = open_study(folder, Hand())
    database.write(lambda c: c.execute("UPDATE state SET trials = 5"))
    for name in ("study.db", "study.db-wal", "study.db-shm", "password"):
        assert mode(folder / name) == 0o600, name
    written = exporting.write(database, study, tmp_path / "out", ["csv", "log"], exporting.Choice())
    private = [file for file in written if file.suffix in (".csv", ".jsonl")]
    assert len(private) == 6
    assert all(mode(file) == 0o600 for file in private)
    database.close()


def test_a_database_that_others_may_read_stays_as_its_owner_wants_it(tmp_path):
    folder = write_study(tmp_path / "words")
    open_study(folder, Hand())[1].close()
    (folder / "study.db").chmod(0o660)
    open_study(folder, Hand())[1].close()
    assert mode(folder / "study.db") == 0o660


def test_neither_log_nor_exports_hold_a_secret(app, tmp_path):
    client = app.test_client()
    sign_in(client, "words")
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    link = post(client, "words", "links").json["address"].rsplit("/", 1)[1]
    _, action, page = taking_part(app)
    question = re.search(r'name="question" value="([^"]+)"', page.text)[1]
    served = app.extensions["studies"]["words"]
    whole = b"".join(lines(served.database, served.study)).decode()
    record = (tmp_path / "words" / "password").read_text().split()[-1]
    for secret in (token, link, action.rsplit("/", 1)[1], question, PASSWORD, record):
        assert secret not in whole


def test_old_addresses_of_wrong_passwords_are_forgotten(tmp_path):
    clock = Hand()
    app = application(guarded_study(tmp_path / "words"), clock)
    client = app.test_client()
    sign_in(client, "words", "wrong password", environ_base={"REMOTE_ADDR": "203.0.113.9"})
    clock.ms += security.FORGET_MS + 1
    sign_in(client, "words", "wrong password", environ_base={"REMOTE_ADDR": "203.0.113.10"})
    served = app.extensions["studies"]["words"]
    found = served.database.read(
        lambda c: [row[0] for row in c.execute("SELECT address FROM attempts")]
    )
    assert found == ["203.0.113.10"]
    served.database.close()


def test_a_hostile_database_cannot_run_what_it_likes(tmp_path):
    database = Database(tmp_path / "study.db", Hand())
    assert database.read(lambda c: c.execute("PRAGMA trusted_schema").fetchone()[0]) == 0
    with pytest.raises(Exception, match=r"not authorized|no such function|unsafe"):
        database.read(lambda c: c.execute("SELECT load_extension('x')").fetchone())
    database.close()


# ---- the page that says all this ----------------------------------------------------------------

THREAT = re.compile(r"^(\d+)\. \*\*", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def threats():
    text = (ROOT / "docs" / "security.md").read_text()
    starts = [found.start() for found in THREAT.finditer(text)]
    numbers = [int(found[1]) for found in THREAT.finditer(text)]
    ends = [*starts[1:], text.index("\n## ", starts[-1])]
    return numbers, [text[start:end] for start, end in zip(starts, ends, strict=True)]


def test_every_threat_names_a_test_that_exists():
    numbers, parts = threats()
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 20
    for number, part in zip(numbers, parts, strict=True):
        named = TEST.findall(part)
        assert named, f"threat {number} names no test"
        for file, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (
                f"threat {number} names {file}::{name}, which is not there"
            )


def test_every_personal_column_is_in_the_page():
    """A column that is added must be thought about."""
    schema = (ROOT / "server" / "store" / "schema.sql").read_text()
    table = re.search(r"CREATE TABLE participants \((.*?)\) STRICT", schema, re.DOTALL)[1]
    columns = re.findall(r"^    (\w+) (?:TEXT|INTEGER)", table, re.MULTILINE)
    text = (ROOT / "docs" / "security.md").read_text()
    assert len(columns) > 10
    for column in columns:
        assert f"`{column}`" in text, column
