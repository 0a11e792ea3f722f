"""The doctor on a machine that is well, and on real faults."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from server.auth.passwords import set_password
from server.cli.main import main
from server.doctor import clocks, disk, folder, machine, reach
from tests.support.live_server import LiveServer, now, write_study

posix = pytest.mark.skipif(os.name != "posix", reason="files have no modes here")


@pytest.fixture
def tmp_path(disk_path):
    return disk_path


@pytest.fixture
def study(tmp_path):
    made = write_study(tmp_path / "words")
    set_password(made, "a long password")
    return made


def levels(findings):
    return {finding.check: finding.level for finding in findings}


def only(findings, check):
    (found,) = [finding for finding in findings if finding.check == check]
    assert (found.level == "ok") == (found.advice == "")
    return found


def test_a_valid_study_can_run_and_is_left_as_it_was(study):
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    result = CliRunner().invoke(main, ["doctor", str(study), "--port", "0", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["problems"] == 0
    found = {finding["check"]: finding for finding in report["findings"]}
    assert set(found) == {
        *("study", "password", "permissions", "backups"),
        *("disk sync", "database", "file system", "disk space"),
        *("date", "clock", "time service", "versions", "SQLite", "cores", "memory", "kernels"),
        *("port", "network", "server", "browser reach"),
    }
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "doctor.md").read_text()
    assert re.findall(r"^\| ([\w ]+) \|", page, re.M)[1:] == [
        finding["check"] for finding in report["findings"]
    ]
    assert report["warnings"] == sum(finding["level"] == "warning" for finding in found.values())
    for name in ("study", "password", "database", "versions", "SQLite", "port", "server"):
        assert found[name]["level"] == "ok", found[name]
    assert "files loaded in" in found["browser reach"]["found"]
    assert before == {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="/proc cannot be written, not by root")
def test_everything_wrong_is_said_at_once_and_ends_with_1():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        result = CliRunner().invoke(main, ["doctor", "/proc/self", "--port", port])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    for beginning in ("problem  study", "problem  disk sync", "problem  database", "problem  port"):
        at = next(at for at, line in enumerate(lines) if line.startswith(beginning))
        assert lines[at + 1].strip().startswith("→ ")
    assert any(line.startswith("ok       browser reach") for line in lines), "with a sample instead"
    assert lines[-1].endswith("Fix the problems before you start a study.")


def test_a_study_with_mistakes_is_shown_with_them(study):
    (study / "study.toml").write_text('title = ""\n[session]\ntrails = 3\n')
    found = [one for one in folder.examine(study) if one.check == "study"]
    assert {finding.level for finding in found} == {"problem"}
    assert any("did you mean" in finding.found and "trials" in finding.found for finding in found)


def test_a_port_in_use_is_a_problem_but_our_own_server_is_none(study):
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = reach._port("127.0.0.1", other.getsockname()[1])
    assert (found.level, "is not available" in found.found) == ("problem", True)
    assert reach._port("192.0.2.1", 0).level == "problem"
    assert reach._port("127.0.0.1", 0).level == "ok"
    server = LiveServer(study)
    try:
        found = reach._port("127.0.0.1", int(server.address.rpartition(":")[2]))
    finally:
        server.close()
    assert found.level == "warning"
    assert "in use by a lore-active server" in found.found


def test_listening_on_all_interfaces_is_a_warning():
    assert reach._openness("0.0.0.0").level == "warning"
    assert reach._openness("127.0.0.1").level == "ok"
    assert reach._openness("::1").level == "ok"


@posix
def test_secrets_that_others_can_read(study):
    assert levels(folder.examine(study))["password"] == "ok"
    (study / "password").chmod(0o644)
    found = only(folder.examine(study), "password")
    assert found.level == "problem"
    assert f"chmod 600 {study / 'password'}" in found.found
    (study / "password").unlink()
    assert only(folder.examine(study), "password").level == "warning"
    (study / "study.db").touch(0o644)
    (study / "study.db").chmod(0o644)
    study.chmod(0o755)
    assert only(folder.examine(study), "permissions").level == "warning"
    study.chmod(0o700)
    assert only(folder.examine(study), "permissions").level == "ok"


def test_the_disk_is_tried_and_nothing_is_left_behind(tmp_path):
    found = levels(disk.examine(tmp_path))
    assert found["database"] == "ok"
    assert found["disk sync"] != "problem"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    found = list(disk.examine(tmp_path / "file"))
    assert levels(found)["disk sync"] == levels(found)["database"] == "problem"


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/share\\040one rw,relatime shared:2 - nfs4 server:/share rw
31 22 0:41 / /tmp rw,nosuid - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/srv/study", "ext4"),
        ("/mnt/share one/study", "nfs4"),
        ("/mnt/share", "ext4"),
        ("/tmp/study", "tmpfs"),
    ],
)
def test_the_kind_of_file_system_is_that_of_the_nearest_mount(tmp_path, place, kind):
    (tmp_path / "mounts").write_text(MOUNTS)
    assert disk.kind_of(Path(place), tmp_path / "mounts") == kind
    assert disk.kind_of(Path(place), tmp_path / "none") is None


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system in memory here")
def test_a_study_in_memory_is_warned_of():
    if disk.kind_of(Path("/dev/shm")) == "tmpfs":
        assert disk._kind(Path("/dev/shm")).level == "warning"
    assert disk._kind(Path("/home/someone/Dropbox/study")).level == "warning"


@pytest.mark.parametrize("ms", [0, 10**12, 5 * 10**12, 10**18], ids=["1970", "2001", "2128", "far"])
def test_a_date_that_cannot_be_is_a_problem(ms):
    assert only(clocks.examine(None, lambda: ms), "date").level == "problem"


def test_a_clock_that_was_set_back_shows_in_the_study(study):
    (study / "study.db").touch()
    os.utime(study / "study.db", (now() / 1000 + 7200,) * 2)
    assert only(clocks.examine(study), "date").level == "warning"


def test_a_clock_that_is_being_set_is_noticed():
    at = iter([now(), now(), now() + 3_600_000])
    assert only(clocks.examine(None, lambda: next(at)), "clock").level == "warning"


def test_little_machines():
    assert machine._memory(3 * 10**8).level == "problem"
    assert machine._memory(10**9).level == "warning"
    assert machine._memory(8 * 10**9).level == "ok"
    assert machine._cores(0.5).level == "warning"
    assert machine._database((3, 31, 1), 3).level == "problem"
    assert machine._database((3, 45, 0), 0).level == "problem"
