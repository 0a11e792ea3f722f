"""Hostile files, paths and uploads, and what others on the machine could read."""

from __future__ import annotations

import gzip
import io
import re
import stat
from pathlib import Path

import pytest

from server.app import create_app
from server.auth import sessions
from server.exports import folder as export_folder
from server.exports.log import lines
from server.store.database import Database
from server.study.lock import ProcessLock
from server.study.workspace import open_study
from server.views.headers import CLOSED
from tests.support.experimenter_client import (
    PASSWORD,
    Hand,
    application,
    guarded_study,
    post,
    sign_in,
)
from tests.support.live_server import write_study
from tests.support.participant_client import SETTINGS, taking_part
from tests.support.study_folders import SOUND_FILES, only, small_study, write

ROOT = Path(__file__).parents[3]


@pytest.fixture
def app(tmp_path):
    made = application(guarded_study(tmp_path / "words", SETTINGS))
    yield made
    for served in made.extensions["studies"].values():
        served.database.close()


PAGE = b"<html><script>alert(document.domain)</script></html>"
POLYGLOTS = {
    "gif.gif": SOUND_FILES[".gif"] + b"/*" + PAGE + b"*/=1;",
    "png.png": SOUND_FILES[".png"] + PAGE,
    "jpg.jpg": SOUND_FILES[".jpg"] + PAGE,
    "mp3.mp3": b"ID3" + PAGE,
    "wav.wav": SOUND_FILES[".wav"] + PAGE,
    "mp4.mp4": SOUND_FILES[".mp4"] + PAGE,
    "webp.webp": SOUND_FILES[".webp"] + PAGE,
}


def test_a_file_that_is_also_a_page_is_only_the_file(tmp_path):
    files = {f"stimuli/{name}": content for name, content in POLYGLOTS.items()}
    folder = write(tmp_path / "words", {"study.toml": 'title = "All"', **files})
    app = create_app([folder], Hand())
    served = app.extensions["studies"]["words"]
    assert len(served.display_items.files) == len(POLYGLOTS)
    for name in served.display_items.files:
        reply = app.test_client().get(f"/s/words/stimulus/{name}")
        assert reply.status_code == 200
        assert reply.mimetype.partition("/")[0] in ("image", "audio", "video")
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Content-Security-Policy"] == CLOSED
        reply.close()
    served.database.close()


@pytest.mark.parametrize("name", ["x.svg", "x.html", "x.htm", "x.xml", "x.xhtml", "x.pdf", "x.zip"])
def test_files_that_can_hold_scripts_are_not_stimuli(tmp_path, name):
    assert "stimuli must end in one of" in only(
        small_study(tmp_path / "words", **{f"stimuli/{name}": PAGE})
    )


def test_a_file_swapped_for_a_link_while_serving_is_not_sent(tmp_path):
    folder = small_study(tmp_path.resolve() / "words", **{"stimuli/x.png": SOUND_FILES[".png"]})
    (tmp_path / "secret.png").write_bytes(b"secret")
    app = create_app([folder], Hand())
    client, served = app.test_client(), app.extensions["studies"]["words"]
    (name,) = served.display_items.files
    with client.get(f"/s/words/stimulus/{name}") as reply:
        assert reply.status_code == 200
    (folder / "stimuli" / "x.png").unlink()
    assert client.get(f"/s/words/stimulus/{name}").status_code == 404
    (folder / "stimuli" / "x.png").symlink_to(tmp_path / "secret.png")
    assert client.get(f"/s/words/stimulus/{name}").status_code == 404
    served.database.close()


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../server/app.py", "/static/%2e%2e/server/app.py", "/static/..\\server\\app.py"),
        *("/static//etc/passwd", "/static/vendor/../../pyproject.toml", "/static/.", "/static/"),
        *("/s/words/stimulus/../study.toml", "/s/words/stimulus/..%2fstudy.db", "/s/../study.db"),
        *("/s/words/stimulus/word00.txt", "/s/words/study.db", "/s/words/password", "/study.db"),
        *("/monitor/words/export/../../study.db", "/monitor/words/export/%2e%2e%2fpassword"),
        "/s/words/stimulus/" + "../" * 20 + "etc/passwd",
    ],
)
def test_no_path_leads_out(app, path):
    reply = app.test_client().get(path)
    assert reply.status_code in (303, 308, 404)
    assert b"root:" not in reply.data and b"scrypt" not in reply.data


def test_nothing_is_uploaded(app):
    """No route takes a file: there is nothing to unpack, and no name to write to."""
    client, action, _ = taking_part(app)
    for path in ("consent", "begin", "feedback", "answer"):
        form = {"text": (io.BytesIO(b"PK\x03\x04"), "../../evil.zip"), "agreed": "yes"}
        reply = client.post(f"{action}/{path}", data=form, content_type="multipart/form-data")
        assert reply.status_code in (303, 415)
    for module in (ROOT / "server").rglob("*.py"):
        text = module.read_text()
        assert "request.files" not in text
        assert not re.search(r"import (zipfile|tarfile|pickle|shelve|marshal|yaml)\b", text), module
        assert not re.search(r"unpack_archive|extractall|\beval\(|\bexec\(|shell=True", text), (
            module
        )


def test_a_bomb_in_a_request_is_not_unpacked(app):
    client, action, _ = taking_part(app)
    bomb = gzip.compress(b"text=" + b"x" * 50_000_000)
    assert len(bomb) < 64 * 1024
    reply = client.post(
        f"{action}/feedback",
        data=bomb,
        headers={"Content-Encoding": "gzip"},
        content_type="application/x-www-form-urlencoded",
    )
    assert reply.status_code in (200, 303, 400)
    deep = '{"a":' * 1300 + "1" + "}" * 1300
    assert (
        client.post(f"{action}/answer", data={"side": "left", "timings": deep}).status_code == 404
    )


# ---- what lies on the disk ----------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_studys_data_is_its_owners_alone(tmp_path):
    folder = guarded_study(tmp_path / "words")
    study, database = open_study(folder, Hand())
    database.write(lambda c: c.execute("UPDATE state SET trials = 5"))
    ProcessLock(folder).release()
    for name in ("study.db", "study.db-wal", "study.db-shm", "study.lock", "password"):
        assert mode(folder / name) == 0o600, name
    written = export_folder.write(
        database, study, tmp_path / "out", ["csv", "log"], export_folder.ExportOptions()
    )
    private = [file for file in written if file.suffix in (".csv", ".jsonl")]
    assert {"answers.csv", "participants.csv", "models.csv"} <= {file.name for file in private}
    assert all(mode(file) == 0o600 for file in private)
    database.close()


def test_a_database_that_others_may_read_stays_as_its_owner_wants_it(tmp_path):
    folder = write_study(tmp_path / "words")
    open_study(folder, Hand())[1].close()
    (folder / "study.db").chmod(0o660)
    open_study(folder, Hand())[1].close()
    assert mode(folder / "study.db") == 0o660


def test_neither_log_nor_exports_hold_a_secret(app, tmp_path):
    client = app.test_client()
    sign_in(client, "words")
    token = client.get_cookie("lore_monitor_words", path="/monitor").value
    link = post(client, "words", "links").json["address"].rsplit("/", 1)[1]
    _, action, page = taking_part(app)
    question = re.search(r'name="question" value="([^"]+)"', page.text)[1]
    served = app.extensions["studies"]["words"]
    whole = b"".join(lines(served.database, served.study)).decode()
    record = (tmp_path / "words" / "password").read_text().split()[-1]
    for secret in (token, link, action.rsplit("/", 1)[1], question, PASSWORD, record):
        assert secret not in whole


def test_old_addresses_with_wrong_passwords_are_dropped(tmp_path):
    clock = Hand()
    app = application(guarded_study(tmp_path / "words"), clock)
    client = app.test_client()
    sign_in(client, "words", "wrong password", environ_base={"REMOTE_ADDR": "203.0.113.9"})
    clock.ms += sessions.FORGET_MS + 1
    sign_in(client, "words", "wrong password", environ_base={"REMOTE_ADDR": "203.0.113.10"})
    served = app.extensions["studies"]["words"]
    found = served.database.read(
        lambda c: [row[0] for row in c.execute("SELECT address FROM attempts")]
    )
    assert found == ["203.0.113.10"]
    served.database.close()


def test_a_hostile_database_cannot_run_what_it_likes(tmp_path):
    database = Database(tmp_path / "study.db", Hand())
    assert database.read(lambda c: c.execute("PRAGMA trusted_schema").fetchone()[0]) == 0
    with pytest.raises(Exception, match=r"not authorized|no such function|unsafe"):
        database.read(lambda c: c.execute("SELECT load_extension('x')").fetchone())
    database.close()
