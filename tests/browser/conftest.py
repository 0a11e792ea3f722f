"""A real Chromium for the pages' tests."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

from tests.living import LiveServer

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed, and CI must not skip the browser tests.")
        pytest.skip(
            "BROWSER TESTS SKIPPED: no chromium on this machine (Debian: apt install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def serve():
    """Call with study folders; gives a LiveServer that is closed after the test."""
    servers: list[LiveServer] = []

    def start(*folders):
        servers.append(LiveServer(*folders))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
