"""While nothing can be stored, the monitor says why, and that it is over."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.monitor_pages import assert_valid_page, monitor
from tests.support.experimenter_client import guarded_study


def test_the_monitor_names_what_is_wrong_while_it_is(chromium, serve, tmp_path):
    server = serve(guarded_study(tmp_path / "words"))
    page = monitor(chromium, server.address, "words")
    banner = page.locator("#storage")
    expect(page.locator("#headline")).to_have_text("No answers yet.")
    expect(banner).to_be_hidden()
    connection = server.studies["words"].database.writer._connection
    connection.execute("PRAGMA query_only = 1")
    expect(banner).to_have_text(
        "Error: read-only. The database is read-only: answers cannot be stored. Give the user "
        "who runs the server write access to study.db and its folder, and make sure that the disk "
        "is not mounted read-only; answers are then stored again."
    )
    expect(banner).to_have_attribute("role", "alert")
    expect(page.locator("#headline")).to_be_visible()
    assert_valid_page(page)
    # It is told to those who try, too, in the dialog that they use.
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Nothing was changed")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    connection.execute("PRAGMA query_only = 0")
    expect(banner).to_be_hidden()
    page.context.close()
