"""A participant goes through a whole study in a real browser."""

from __future__ import annotations

from tests.living import write_study


def test_from_the_link_to_the_code(chromium, serve, tmp_path):
    toml = '[session]\ntrials = 6\npractice = 1\nbreak_every = 4\n[completion]\ncode = "DONE-77"\n'
    server = serve(write_study(tmp_path / "words", toml))
    page = chromium.new_page()
    page.goto(f"{server.address}/s/words/?PROLIFIC_PID=abc")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("button", name="Begin").click()
    for _ in range(20):
        if page.get_by_role("heading", name="One last thing").count():
            break
        if page.get_by_role("button", name="Go on").count():
            page.get_by_role("button", name="Go on").click()
            continue
        page.locator("button[value=left]").click()
    page.get_by_role("button", name="Send and finish").click()
    assert page.get_by_text("DONE-77").is_visible()
    page.close()
