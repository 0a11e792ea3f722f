"""A real Chromium for the pages' tests."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.monitor_pages import PATIENCE_MS
from tests.support.live_server import LiveServer

# A second list replaces Playwright's own, so that is repeated. Ours are pages of Chromium's address
# bar, which nobody sees: loading them in each new window took more time than our pages.
FEATURES_OFF = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect"),
    *("OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    # A process kept ready for the next page: a test's window has a single one.
    "SpareRendererForSitePerProcess",
)
FLAGS = [
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def chromium():
    path = find_chromium()
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


# No test sets a shorter timeout.
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def window(chromium):
    """Call with playwright's options; returns a new browser context, closed afterwards."""
    opened = []

    def open_window(**options):
        opened.append(chromium.new_context(**options))
        opened[-1].set_default_timeout(PATIENCE_MS)
        return opened[-1]

    yield open_window
    for context in opened:
        context.close()


@pytest.fixture
def serve():
    """Call with study folders and options; returns a LiveServer that is closed after the test."""
    servers: list[LiveServer] = []

    def start(*folders, **options):
        servers.append(LiveServer(*folders, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
