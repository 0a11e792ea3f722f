"""Step through a study's pages in a browser, waiting for each expected page."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Locator, Page, expect

from server.collection.screens import CONTINUED

WHOLE = """
[session]
trials = 6
practice = 2
break_every = 3
[trial]
skip = true
[completion]
code = "DONE-77"
"""


class Walk:
    """One participant's window; records every error that the browser reports."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)

    def _heard(self, message) -> None:
        # Lost connections are part of some tests; everything else is an error.
        if message.type in ("error", "warning") and "net::ERR" not in message.text:
            self.complaints.append(message.text)

    @property
    def stage(self) -> Locator:
        """The part that changes, once it can be used."""
        ready = self.page.locator("#stage > [data-settled], #stage > .trial[data-state=open]")
        expect(ready).to_be_visible()
        return ready

    @property
    def kind(self) -> str:
        """Which page this is."""
        return str(self.stage.get_attribute("data-kind"))

    @property
    def question(self) -> str:
        """The token of the trial on the page."""
        return str(self.stage.locator("[name=question]").get_attribute("value"))

    def press(self, name: str) -> None:
        """Click a button of a page of text and wait for the next page."""
        mark = self._mark()
        self.page.get_by_role("button", name=name).click()
        self.gone(mark)

    def answer(self, act: Callable[[], None] | None = None) -> None:
        """Answer the trial on the page, by default with the left arrow key."""
        mark = self._mark()
        (act or (lambda: self.page.keyboard.press("ArrowLeft")))()
        self.gone(mark)

    def _mark(self) -> Locator:
        """The page as it is now, to see when it has been replaced."""
        self.stage.evaluate("(part) => part.setAttribute('data-old', '')")
        return self.page.locator("[data-old]")

    def gone(self, mark: Locator) -> None:
        """Wait until the next page is there."""
        expect(mark).to_have_count(0)
        assert self.stage

    def step(self) -> str:
        """Do what the page asks for; returns the page's kind."""
        kind = self.kind
        if kind == "consent":
            self.press("I agree")
        elif kind == "instructions":
            self.press("Begin")
        elif kind in CONTINUED:
            self.press("Continue")
        elif kind == "feedback":
            self.press("Send and finish")
        elif kind in ("practice", "trial"):
            self.answer()
        return kind

    def until(self, kind: str) -> None:
        """Continue until the page is of this kind."""
        for _ in range(60):
            if self.kind == kind:
                return
            self.step()
        raise AssertionError(f"never came to {kind}, but is at {self.kind}")

    def fits(self, width: int, height: int) -> bool:
        """Whether the page fits a window of this size without scrolling."""
        self.page.set_viewport_size({"width": width, "height": height})
        sizes = "() => [document.documentElement.scrollHeight, innerHeight]"
        needed, there = self.page.evaluate(sizes)
        return bool(needed <= there)

    def axe(self) -> list[str]:
        """Violations that axe-core reports for the current page."""
        from tests.browser.axe import violations

        return violations(self.page)


def first_trial_without_scripts(window, address: str) -> Page:
    """A trial in a browser without JavaScript; the study has no practice."""
    page: Page = window(java_script_enabled=False).new_page()
    page.goto(address)
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    return page


def rows(server, study: str, sql: str) -> list[tuple]:
    """What the database holds."""
    found = server.studies[study].database.read(lambda c: c.execute(sql).fetchall())
    return [tuple(row) for row in found]


def token(page: Page) -> str:
    """The participant's token, from the address."""
    found = re.search(r"/p/([\w-]+)", page.url)
    assert found
    return found[1]
