"""What the monitor's browser tests share: signing in, watching for violations, axe."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from benchmarks.server import wait_until
from tests.browser.axe import violations
from tests.support.experimenter_client import PASSWORD

# Two cores may be shared with much other work: patience costs nothing when all is well.
PATIENCE_MS = 120_000
WATCH = (
    "window.violations = [];"
    "document.addEventListener('securitypolicyviolation', e => window.violations.push("
    "`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));"
)


def new_page(browser: Browser, **options) -> Page:
    """A page with cookies of its own that remembers violations and errors."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.add_init_script(WATCH)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda message: _heard(page, message))
    return page


def _heard(page: Page, message: ConsoleMessage) -> None:
    # Requests that fail, such as a wrong password, are part of some tests.
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        page.errors.append(message.text)


def wait_for(page: Page, expression: str, argument: object = None) -> None:
    """Wait until a JavaScript expression is true.

    Playwright's own `wait_for_function` evaluates a string inside the page from its second attempt
    on, which our content security policy forbids.
    """
    wait_until(lambda: bool(page.evaluate(expression, argument)), PATIENCE_MS / 1000)


def sign_in(page: Page, address: str, study: str, password: str = PASSWORD) -> None:
    page.goto(f"{address}/monitor/?study={study}")
    page.get_by_label("Password").fill(password)
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Sign in").click()


def monitor(browser: Browser, address: str, study: str, **options) -> Page:
    """A page with the monitor on it, up to date.

    Signed in without the form, which tests of access fill in: it takes as long as the monitor.
    """
    page = new_page(browser, **options)
    requests = page.context.request
    token = re.search(r'name="csrf" value="([^"]+)"', requests.get(f"{address}/monitor/").text())
    assert token
    form = {"csrf": token[1], "study": study, "password": PASSWORD, "who": "Ada"}
    assert requests.post(f"{address}/monitor/sign-in", form=form).ok
    page.goto(f"{address}/monitor/{study}/")
    page.wait_for_selector("body[data-version]")
    return page


def confirm(page: Page, control: str, button: str, **fields: str) -> None:
    """Use a control and say yes to its question."""
    page.get_by_role("button", name=control, exact=True).click()
    answer(page, button, **fields)


def answer(page: Page, button: str, **fields: str) -> None:
    dialog = page.locator("dialog[open]")
    for label, value in fields.items():
        dialog.locator(f"[name={label}]").fill(value)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def assert_valid_page(page: Page) -> None:
    """Nothing was blocked, nothing broke, and axe has nothing to say."""
    assert page.evaluate("window.violations") == []
    assert not page.errors, page.errors
    assert violations(page) == []
