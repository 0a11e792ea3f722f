"""The built wheel holds all that a server needs: unpacked elsewhere, it serves pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from benchmarks.server import Serving
from server.processes.bots import Browser
from tests.support.live_server import write_study

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    home = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = home.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home / "site")
    return home / "site"


def test_nothing_is_missing_and_nothing_is_there_that_should_not_be(unpacked):
    names = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    for folder in ("lore_active", "server"):
        for file in (ROOT / folder).rglob("*.py"):
            assert str(file.relative_to(ROOT)) in names
    for folder in ("templates", "static"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and not file.name.startswith("."):
                assert f"server/{file.relative_to(ROOT)}" in names
    assert "server/store/schema.sql" in names
    # Type checkers use the annotations of a package only where this file is.
    assert {"lore_active/py.typed", "server/py.typed"} <= names
    assert any(name.startswith("server/store/migrations/0002") for name in names)
    assert not any(name.startswith(("tests", "benchmarks", "docs", ".")) for name in names)


def test_it_serves_pages_from_elsewhere(unpacked, tmp_path, monkeypatch):
    folder = write_study(tmp_path / "words")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(unpacked))
    result = subprocess.run(
        [sys.executable, "-c", "import server.app; print(server.app.__file__)"],
        capture_output=True,
        text=True,
        env=os.environ,
        check=True,
    )
    assert result.stdout.startswith(str(unpacked)), "the wheel itself must be what is tried"
    server = Serving("--web", "1", str(folder))
    try:
        browser = Browser(server.address(), threading.Event())
        html = browser.get("/s/words/")
        assert browser.status == 200
        found = re.findall(r'(?:href|src)="(/static/[^"]+)"', html)
        assert found
        for address in found:
            browser.get(address)
            assert browser.status == 200, address
        browser.get("/monitor/")
        assert browser.status == 200
        browser.close()
    finally:
        server.stop()
