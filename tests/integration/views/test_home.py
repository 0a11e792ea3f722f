"""The start page: which studies it lists, to whom, in which state."""

from __future__ import annotations

import re

import pytest

from server.app import create_app
from tests.support.live_server import now, write_study
from tests.support.open_study import Respondent, response

TOML = "[session]\ntrials = 4\npractice = 0\nfeedback = false\n[budget]\nanswers = 4\n"
LISTED = 'listed = "{}"\n'
PUBLIC = {"environ_overrides": {"REMOTE_ADDR": "203.0.113.7"}, "base_url": "https://lab.example"}


@pytest.fixture
def folders(tmp_path):
    return [
        write_study(tmp_path / name, LISTED.format(name) + TOML, items=6)
        for name in ("locally", "everywhere", "nowhere")
    ]


@pytest.fixture
def app(folders):
    made = create_app(folders, now)
    yield made
    for served in made.extensions["studies"].values():
        served.database.close()


def listed(reply):
    assert reply.status_code == 200
    return re.findall(r'href="/s/([^"/]+)/"', reply.text)


def state(app, name):
    return re.search(
        rf'/s/{name}/".*?class="pill [a-z]+"[^>]*>([^<]+)<', app.test_client().get("/").text
    )[1]


def test_a_visitor_on_this_machine_finds_all_that_do_not_hide(app):
    for base in ("http://localhost:8000", "http://127.0.0.1", "http://[::1]:8000"):
        assert listed(app.test_client().get("/", base_url=base)) == ["locally", "everywhere"]


@pytest.mark.parametrize(
    "stranger",
    [
        PUBLIC,
        # A proxy on the same machine that does not say so, but passes the host on.
        {"base_url": "https://lab.example"},
        # A visitor in the network who forges a local host name.
        {"environ_overrides": {"REMOTE_ADDR": "192.168.1.9"}, "base_url": "http://localhost"},
        {"environ_overrides": {"REMOTE_ADDR": ""}},
        {"base_url": "http://127.0.0.1.lab.example"},
    ],
)
def test_strangers_find_only_what_was_made_public(app, stranger):
    reply = app.test_client().get("/", **stranger)
    assert listed(reply) == ["everywhere"]
    assert "nowhere" not in reply.text and "locally" not in reply.text


def test_a_server_without_public_studies_says_how_to_take_part(tmp_path):
    app = create_app([write_study(tmp_path / "words", TOML)], now)
    page = app.test_client().get("/", **PUBLIC).text
    app.extensions["studies"]["words"].database.close()
    assert "No study is listed here" in page and "use the link that you were given" in page
    assert "words" not in page.lower() and "/monitor/" in page


def test_it_has_the_headers_of_every_page(app):
    headers = app.test_client().get("/").headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "<script" not in app.test_client().get("/").text
    assert "style=" not in app.test_client().get("/").text


def test_the_state_is_what_a_participant_would_meet(app):
    served = app.extensions["studies"]["locally"]
    assert state(app, "locally") == "open"
    served.control.pause("Ada")
    assert state(app, "locally") == "paused"
    served.control.resume("Ada")
    came = served.service.arrive({})
    # All four answers of the budget are reserved for them.
    assert state(app, "locally") == "full" and state(app, "everywhere") == "open"
    served.service.visit(came.token)
    served.service.consent(came.token, True)
    stage, participant = served.service.begin(came.token), Respondent(6, 2)
    while stage.kind == "trial":
        stage = served.service.answer(
            came.token, stage.trial.token, response(participant.side(stage))
        )
    assert state(app, "locally") == "full"
    served.control.stop("Ada")
    assert state(app, "locally") == "closed"


def test_titles_are_text(tmp_path):
    folder = write_study(tmp_path / "words", TOML)
    toml = folder / "study.toml"
    harm = "<script>alert(1)</script>"
    toml.write_text(toml.read_text().replace('title = "Words"', f'title = "{harm}"'))
    app = create_app([folder], now)
    page = app.test_client().get("/").text
    app.extensions["studies"]["words"].database.close()
    assert harm not in page and "&lt;script&gt;" in page
