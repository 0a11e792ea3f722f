"""An experimenter's browser without a browser: signs in, keeps cookies, sends forms as pages do."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from flask import Flask
from flask.testing import FlaskClient
from pytest import MonkeyPatch

from server.app import create_app
from server.auth import passwords
from server.auth.passwords import FILE
from tests.support.live_server import write_study

PASSWORD = "correct horse battery"


def guarded_study(folder: Path, toml: str = "", items: int = 12, password: str = PASSWORD) -> Path:
    """A study of words with a password."""
    write_study(folder, toml, items)
    file = folder / FILE
    file.touch(0o600)
    file.write_text(_hashed(password))
    return folder


@cache
def _hashed(password: str) -> str:
    """The password's file; hashing takes long by design: it is done once, at the lowest cost that
    is accepted, since each sign-in takes as long."""
    with TemporaryDirectory() as home, MonkeyPatch.context() as patch:
        patch.setattr(passwords, "COST", passwords.MIN_COST // passwords.BLOCK)
        passwords.set_password(Path(home), password)
        return (Path(home) / FILE).read_text()


class Hand:
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.ms


def application(folder: Path, clock=None) -> Flask:
    return create_app([folder], clock or Hand())


def csrf_token(client: FlaskClient) -> str:
    """The sign-in form's token, with its cookie in the client."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/monitor/").text)
    assert found
    return found[1]


def sign_in(client: FlaskClient, study: str, password: str = PASSWORD, who: str = "Ada", **more):
    form = {"csrf": csrf_token(client), "study": study, "password": password, "who": who}
    return client.post("/monitor/sign-in", data=form, **more)


def csrf(client: FlaskClient, study: str) -> str:
    """What the monitor's forms carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get(f"/monitor/{study}/").text)
    assert found
    return found[1]


def post(client: FlaskClient, study: str, path: str, **form):
    """Send one of the monitor's forms as its script does."""
    form = {"csrf": csrf(client, study), **form}
    return client.post(f"/monitor/{study}/{path}", data=form, headers={"X-Monitor": "1"})
