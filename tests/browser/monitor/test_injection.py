"""What participants and experimenters write is shown in the monitor, and never runs there."""

from __future__ import annotations

from playwright.sync_api import expect

from server.auth.passwords import set_password
from tests.browser.monitor_pages import monitor
from tests.support.experimenter_client import PASSWORD
from tests.support.study_folders import write

EVIL = '"><img src=x onerror="window.ran=1"><script>window.ran=1</script>'
TOML = """
stimuli.list = "items.csv"
[session]
trials = 1
practice = 0
feedback = true
"""


def test_nothing_that_participants_write_runs_in_the_monitor(chromium, serve, tmp_path):
    quoted = EVIL.replace('"', '""')
    rows = "".join(f'k{at},"{at} {quoted}","{quoted} {at}"\n' for at in range(5))
    folder = write(
        tmp_path / "words",
        {"study.toml": f"title = '{EVIL}'\n{TOML}", "items.csv": "key,text,label\n" + rows},
    )
    set_password(folder, PASSWORD)
    server = serve(folder)
    served = server.studies["words"]
    came = served.service.arrive({"PROLIFIC_PID": EVIL, EVIL: EVIL}, agent=EVIL)
    served.service.arrive({"PROLIFIC_PID": EVIL, "assignmentId": EVIL})
    served.service.visit(came.token)
    served.service.consent(came.token, True)
    stage = served.service.begin(came.token)
    served.service.answer(came.token, stage.trial.token, (0,))
    served.service.feedback(came.token, EVIL)
    served.control.exclude(EVIL, 1, EVIL)
    server.app.extensions["access"]["words"].make_link(EVIL, EVIL)
    page = monitor(chromium, server.address, "words")
    expect(page.locator("#participant-rows tr")).to_have_count(1)
    expect(page.locator("#log li")).to_have_count(3)
    expect(page.get_by_role("heading", name=EVIL)).to_be_visible()
    assert EVIL in page.locator("#log").inner_text()
    assert page.evaluate("window.ran") is None
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("window.violations") == []
    assert page.errors == []
    page.context.close()
