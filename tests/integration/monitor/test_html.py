"""The experimenter's pages and reports are valid HTML in every state of a study."""

from __future__ import annotations

from server.app import create_app
from server.auth.passwords import set_password
from server.report.report import report as make_report
from tests.support.experimenter_client import PASSWORD, post, sign_in
from tests.support.html_validation import findings
from tests.support.open_study import Desk
from tests.support.report_study import collected


def monitor_pages(folder, clock, name):
    """The sign-in page, a wrong password, the monitor, a view-only link, and an error."""
    app = create_app([folder], clock)
    client, viewer = app.test_client(), app.test_client()
    pages = {"sign-in": client.get("/monitor/").text}
    pages["wrong"] = sign_in(client, name, "not the password").text
    assert sign_in(client, name).status_code == 303
    pages["monitor"] = client.get(f"/monitor/{name}/").text
    pages["known"] = client.get("/monitor/").text
    pages["error"] = client.get(f"/monitor/{name}/export/nothing").text
    link = post(client, name, "links", label="Bob").json["address"]
    pages["viewer"] = viewer.get(link, follow_redirects=True).text
    assert 'id="map-chart"' in pages["monitor"] and 'id="map-chart"' in pages["viewer"]
    for served in app.extensions["studies"].values():
        served.database.close()
    return {f"{name}-{key}": page for key, page in pages.items()}


def test_the_experimenters_pages_are_valid_html(tmp_path):
    pages = {}
    begun, empty = collected(tmp_path / "words"), Desk(tmp_path / "empty")
    for desk in (begun, empty):
        name = desk.folder.name
        for names in (False, True):
            report = make_report(desk.database, desk.study, desk.clock, with_names=names)
            pages[f"{name}-report-{names}"] = report.page
        desk.close()
        set_password(desk.folder, PASSWORD)
        pages |= monitor_pages(desk.folder, desk.clock, name)
    folder = tmp_path / "pages"
    folder.mkdir()
    # It counts `&lt;` in this study's hostile title as four characters.
    found = [finding for finding in findings(folder, pages) if "long-title" not in finding]
    assert found == []
