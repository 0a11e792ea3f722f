"""Who gets in, who does not, and what everybody else sees."""

from __future__ import annotations

import hashlib
import re
import sqlite3

import pytest

from server.auth.passwords import set_password
from server.auth.sessions import FIRST_WAIT_MS, FREE_FAILURES, IDLE_MS, MAX_WAIT_MS, network
from server.views.access import POLICY
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
from tests.support.live_server import write_study


@pytest.fixture
def clock():
    return Hand()


@pytest.fixture
def app(tmp_path, clock):
    made = application(guarded_study(tmp_path / "words"), clock)
    yield made
    for served in made.extensions["studies"].values():
        served.database.close()


def signed_in(app, **more):
    client = app.test_client()
    assert sign_in(client, "words", **more).status_code == 303
    return client


def link_of(client):
    return post(client, "words", "links", label="the wall").json["address"]


def test_the_password_opens_its_study(app):
    client = signed_in(app)
    page = client.get("/monitor/words/")
    assert page.status_code == 200
    assert "Words" in page.text
    assert "Words" in client.get("/monitor/").text


def test_a_wrong_password_opens_nothing(app):
    client = app.test_client()
    reply = sign_in(client, "words", "not the password")
    assert reply.status_code == 403
    assert "Wrong study name or password" in reply.text
    assert client.get("/monitor/words/").status_code == 303


def test_an_unknown_study_looks_like_a_wrong_password(app):
    client = app.test_client()
    wrong = sign_in(client, "words", "not the password").text.replace("words", "")
    unknown = sign_in(client, "nowhere", "not the password").text.replace("nowhere", "")
    assert wrong == unknown


def test_studies_are_not_named_before_signing_in(app):
    assert "Words" not in app.test_client().get("/monitor/").text


def test_one_password_does_not_open_another_study(tmp_path, clock):
    from server.app import create_app

    one, two = (
        guarded_study(tmp_path / "one"),
        guarded_study(tmp_path / "two", password="another horse"),
    )
    app = create_app([one, two], clock)
    client = app.test_client()
    sign_in(client, "one")
    assert client.get("/monitor/one/").status_code == 200
    assert client.get("/monitor/two/").status_code == 303
    # The token of one study is worth nothing in the other, whatever the cookie is called.
    cookie = client.get_cookie("lore_monitor_one", path="/monitor")
    client.set_cookie("lore_monitor_two", cookie.value, path="/monitor")
    assert client.get("/monitor/two/").status_code == 303
    for served in app.extensions["studies"].values():
        served.database.close()


def test_a_study_without_a_password_stays_closed(tmp_path, clock):
    app = application(write_study(tmp_path / "words"), clock)
    reply = sign_in(app.test_client(), "words", "")
    assert reply.status_code == 403
    assert "lore-active password" in reply.text
    app.extensions["studies"]["words"].database.close()


def test_signing_in_reveals_no_study_names_by_message_or_duration(tmp_path, clock, monkeypatch):
    from server.app import create_app

    folders = [
        guarded_study(tmp_path / "words"),
        guarded_study(tmp_path / "more", password="another horse"),
        write_study(tmp_path / "shut"),
    ]
    # At today's cost, as every password that is set now.
    set_password(folders[0], PASSWORD)
    set_password(folders[1], "another horse")
    app = create_app(folders, clock)
    hashes, real = [], hashlib.scrypt

    def counting(password, **parameters):
        hashes.append(tuple(parameters[name] for name in ("n", "r", "p", "dklen")))
        return real(password, **parameters)

    monkeypatch.setattr(hashlib, "scrypt", counting)
    found = {}
    for name in ("words", "more", "shut", "nowhere", "w" * 3000, "caf\u00e9"):
        client, tries = app.test_client(), []
        # The first study's own password is worth nothing for others, nor for no study at all.
        first = "wrong" if name == "words" else PASSWORD
        for password in (first, "wrong", "", "x" * 2000, "wrong", "wrong"):
            hashes.clear()
            counted_before = attempts(app)
            reply = sign_in(client, name, password)
            text = re.sub(r'name="csrf" value="[^"]+"', "", reply.text)
            text = text.replace(f'value="{name}"', "")
            counted = attempts(app) - counted_before
            tries.append(
                (reply.status_code, reply.headers.get("Retry-After"), text, *hashes, counted)
            )
        found[name] = tries
    wanted = found.pop("words")
    assert [case[0] for case in wanted] == [403] * 5 + [429]
    # One hash for each password that is looked at, and one attempt written down.
    assert [len(case) for case in wanted] == [5, 5, 5, 4, 5, 4]
    assert [case[-1] for case in wanted] == [1, 1, 1, 1, 1, 0]
    assert "Wrong study name or password." in wanted[0][2]
    for name, statuses in found.items():
        assert statuses == wanted, name
    for served in app.extensions["studies"].values():
        served.database.close()


def attempts(app):
    """How many wrong passwords all studies have counted."""
    return sum(
        served.database.read(
            lambda c: c.execute("SELECT total(failures) FROM attempts").fetchone()
        )[0]
        for served in app.extensions["studies"].values()
    )


def test_wrong_passwords_delay_everyone_at_that_address(app, clock):
    client = app.test_client()
    for _ in range(FREE_FAILURES):
        assert sign_in(client, "words", "wrong").status_code == 403
    early = sign_in(client, "words")
    assert early.status_code == 429
    assert early.headers["Retry-After"] == str(FIRST_WAIT_MS // 1000)
    assert f"wait {FIRST_WAIT_MS // 1000} seconds" in early.text
    elsewhere = sign_in(app.test_client(), "words", environ_base={"REMOTE_ADDR": "203.0.113.9"})
    assert elsewhere.status_code == 303
    clock.ms += FIRST_WAIT_MS
    assert sign_in(client, "words").status_code == 303


def test_every_further_wrong_password_doubles_the_wait(app, clock):
    client = app.test_client()
    for _ in range(FREE_FAILURES):
        sign_in(client, "words", "wrong")
    expected = FIRST_WAIT_MS
    for _ in range(12):
        waited = int(sign_in(client, "words").headers["Retry-After"])
        assert waited == expected // 1000
        clock.ms += expected
        assert sign_in(client, "words", "wrong").status_code == 403
        expected = min(MAX_WAIT_MS, 2 * expected)


def test_the_right_password_forgives_wrong_ones(app):
    client = app.test_client()
    for _ in range(3):
        for _ in range(FREE_FAILURES - 1):
            assert sign_in(client, "words", "wrong").status_code == 403
        assert sign_in(client, "words").status_code == 303


def test_an_ipv6_network_counts_as_one_place():
    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:ffff::1") != network("2001:db8::1")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1")


def test_cookies_are_kept_from_scripts_and_other_sites(app):
    plain = sign_in(app.test_client(), "words").headers["Set-Cookie"]
    assert "HttpOnly" in plain and "SameSite=Lax" in plain and "Path=/monitor" in plain
    assert "Secure" not in plain
    client = app.test_client()
    safe = client.post(
        "/monitor/sign-in",
        data={"csrf": csrf_token(client), "study": "words", "password": PASSWORD},
        base_url="https://localhost",
    )
    # The cookie of the sign-in page came over plain HTTP here, so this only looks at the flags.
    cookies = [cookie for cookie in safe.headers.getlist("Set-Cookie") if "lore_monitor" in cookie]
    assert all("Secure" in cookie for cookie in cookies) and cookies


def test_signing_in_makes_a_new_session_and_ends_the_old_one(app):
    client = signed_in(app)
    old = client.get_cookie("lore_monitor_words", path="/monitor").value
    sign_in(client, "words")
    assert client.get_cookie("lore_monitor_words", path="/monitor").value != old
    other = app.test_client()
    other.set_cookie("lore_monitor_words", old, path="/monitor")
    assert other.get("/monitor/words/").status_code == 303


def test_signing_out_ends_the_session_on_the_server(app):
    client = signed_in(app)
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    post(client, "words", "sign-out")
    client.set_cookie("lore_monitor_words", token, path="/monitor")
    assert client.get("/monitor/words/").status_code == 303


def test_a_new_password_ends_every_session(app, tmp_path):
    client = signed_in(app)
    set_password(tmp_path / "words", "another password")
    assert client.get("/monitor/words/").status_code == 303


def test_idle_sessions_end(app, clock):
    client = signed_in(app)
    clock.ms += IDLE_MS
    assert client.get("/monitor/words/").status_code == 200
    clock.ms += IDLE_MS + 1
    assert client.get("/monitor/words/").status_code == 303


def test_the_database_holds_no_token(app, tmp_path):
    client = signed_in(app)
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    link = link_of(client).rsplit("/", 1)[1]
    with sqlite3.connect(tmp_path / "words" / "study.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert token not in dump and link not in dump


# ---- forged requests ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_steer(app, headers):
    client = signed_in(app)
    form = {"csrf": csrf(client, "words")}
    reply = client.post("/monitor/words/control/pause", data=form, headers=headers)
    assert reply.status_code == 403
    own_origin = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    reply = client.post("/monitor/words/control/pause", data=form, headers=own_origin)
    assert reply.status_code == 303


@pytest.mark.parametrize("token", ["", "guess", "ü"])
def test_a_form_without_its_token_is_refused(app, token):
    client = signed_in(app)
    reply = client.post("/monitor/words/control/pause", data={"csrf": token})
    assert reply.status_code == 403


def test_another_sessions_token_is_refused(app):
    one, two = signed_in(app), signed_in(app)
    form = {"csrf": csrf(two, "words")}
    assert one.post("/monitor/words/control/pause", data=form).status_code == 403


def test_another_site_cannot_sign_anyone_in(app):
    form = {"csrf": "x", "study": "words", "password": PASSWORD}
    assert app.test_client().post("/monitor/sign-in", data=form).status_code == 403


# ---- view-only links --------------------------------------------------------------------------


def test_a_link_shows_without_steering_until_it_is_revoked(app):
    owner, guest = signed_in(app), app.test_client()
    address = link_of(owner)
    assert guest.get(address).status_code == 303
    page = guest.get("/monitor/words/")
    assert page.status_code == 200
    assert "Pause" not in page.text and "export" not in page.text and "csrf" not in page.text
    assert guest.get("/monitor/words/data").status_code == 200
    assert guest.get("/monitor/words/export/answers.csv").status_code == 403
    number = owner.get("/monitor/words/links").json["links"][0]["id"]
    assert post(owner, "words", f"links/{number}/revoke").status_code == 200
    assert guest.get("/monitor/words/data", headers={"X-Monitor": "1"}).status_code == 401
    assert guest.get(address).status_code == 404
    assert post(owner, "words", f"links/{number}/revoke").status_code == 409


def test_a_guest_learns_no_names(app):
    owner, guest = signed_in(app), app.test_client()
    served = app.extensions["studies"]["words"]
    served.service.arrive({"PROLIFIC_PID": "5f-secret"})
    # A second assignment puts the first one's parameters into the log.
    served.service.arrive({"PROLIFIC_PID": "5f-secret", "assignmentId": "two"})
    served.control.exclude("Ada", 1, "5f-secret was too fast")
    guest.get(link_of(owner))
    assert "5f-secret" in owner.get("/monitor/words/data").text
    assert "5f-secret" not in guest.get("/monitor/words/data").text


def test_an_experimenter_who_follows_a_link_can_still_steer(app):
    client = signed_in(app)
    client.get(link_of(client))
    assert post(client, "words", "control/pause").status_code == 200


# ---- every route, every role --------------------------------------------------------------------

ROLES = ("anonymous", "participant", "reader", "experimenter")
OPEN = {"participant", "static", "health", "home"}
# (anonymous, participant, reader, experimenter)
SIGN_IN, NO, YES, DONE = 303, 401, 200, 303
MATRIX = {
    "GET /monitor/": (200, 200, 200, 200),
    "POST /monitor/sign-in": (303, 303, 303, 303),
    "GET /monitor/<study>/": (SIGN_IN, SIGN_IN, YES, YES),
    "GET /monitor/<study>/data": (NO, NO, YES, YES),
    "GET /monitor/<study>/items": (NO, NO, YES, YES),
    "GET /monitor/<study>/export/<name>": (SIGN_IN, SIGN_IN, 403, YES),
    "GET /monitor/<study>/links": (NO, NO, 403, YES),
    "POST /monitor/<study>/links": (NO, NO, 403, 201),
    "POST /monitor/<study>/links/<int:number>/revoke": (NO, NO, 403, DONE),
    "GET /monitor/<study>/view/<token>": (404, 404, 404, 404),
    "POST /monitor/<study>/control/<action>": (NO, NO, 403, DONE),
    "POST /monitor/<study>/participants/<int:number>/<any(exclude, restore):act>": (
        NO,
        NO,
        403,
        DONE,
    ),
    "GET /monitor/<study>/participants/<int:number>": (NO, NO, YES, YES),
    "POST /monitor/<study>/participants/<int:number>/effect": (NO, NO, 403, YES),
    "POST /monitor/<study>/sign-out": (NO, NO, 403, 303),
}
FILLED = {
    "<study>": "words",
    "<name>": "answers.csv",
    "<action>": "pause",
    "<int:number>": "1",
    "<any(exclude, restore):act>": "exclude",
    "<token>": "no-such-link",
}


def routes(app):
    for rule in app.url_map.iter_rules():
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            yield rule, f"{method} {rule.rule}"


def test_every_route_is_in_the_matrix(app):
    found = {
        name
        for rule, name in routes(app)
        if rule.endpoint.partition(".")[0] not in OPEN and not rule.rule.startswith("/s/")
    }
    assert found == set(MATRIX)
    assert all(
        name == "GET /" or name.split()[1].startswith(("/s/", "/static/", "/health"))
        for name in {name for _, name in routes(app)} - found
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One application for the whole matrix, with a link and a participant who takes part."""
    made = application(guarded_study(tmp_path_factory.mktemp("matrix") / "words"))
    owner = signed_in(made)
    made.extensions["studies"]["words"].service.arrive({})
    yield made, owner, link_of(owner)
    made.extensions["studies"]["words"].database.close()


def steered(owner):
    """What a participant who may not steer must not have changed."""
    found = owner.get("/monitor/words/data").json
    excluded = [finding["id"] for finding in found["participants"]["rows"] if finding["excluded"]]
    revoked = [link["revoked_at"] for link in owner.get("/monitor/words/links").json["links"]]
    return found["where"]["status"], excluded, revoked


# The experimenter comes last: what they may do, they do.
@pytest.mark.parametrize("route", MATRIX)
@pytest.mark.parametrize("role", ROLES)
def test_the_matrix_of_roles(shared, route, role):
    app, owner, address = shared
    client, token = app.test_client(), ""
    before = steered(owner)
    if role == "participant":
        client.get("/s/words/")
    elif role == "reader":
        client.get(address)
    elif role == "experimenter":
        sign_in(client, "words")
        token = csrf(client, "words")
    method, path = route.split(" ", 1)
    for part, filling in FILLED.items():
        path = path.replace(part, filling)
    form = {"csrf": token, "reason": "because"}
    if path == "/monitor/sign-in":
        form = {"csrf": csrf_token(client), "study": "words", "password": PASSWORD}
    reply = client.open(path, method=method, data=form if method == "POST" else None)
    # What comes line by line ends here.
    reply.close()
    assert reply.status_code == MATRIX[route][ROLES.index(role)]
    if role != "experimenter":
        assert steered(owner) == before


def test_monitor_pages_cannot_be_framed_and_run_nothing_foreign(app):
    client = signed_in(app)
    for path in ("/monitor/", "/monitor/words/", "/monitor/words/data", "/monitor/words/view/no"):
        assert client.get(path).headers["Content-Security-Policy"] == POLICY
    assert "frame-ancestors 'none'" in POLICY and "unsafe" not in POLICY


def test_every_view_says_who_it_is_open_to(app):
    for rule, name in routes(app):
        if name in MATRIX:
            assert app.view_functions[rule.endpoint].open_to, name
