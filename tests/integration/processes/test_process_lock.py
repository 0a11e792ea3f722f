"""A study is held by one server, whatever happens to the files in its folder."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from server.study.lock import FILE, ProcessLock, StudyLocked

HOLDER = """
import sys
from pathlib import Path
from server.study.lock import ProcessLock
hold = ProcessLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def held_elsewhere(folder):
    """A process that holds the folder until its input closes."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.mark.skipif(os.name != "posix", reason="a file that is open cannot be deleted there")
@pytest.mark.parametrize("harm", ["delete", "replace", "rename the folder"])
def test_no_second_process_gets_the_lock_whatever_happens_to_its_file(tmp_path, harm):
    folder = tmp_path / "words"
    folder.mkdir()
    with held_elsewhere(folder) as holder:
        if harm == "rename the folder":
            folder = folder.rename(tmp_path / "others")
        else:
            (folder / FILE).unlink()
        if harm == "replace":
            (folder / FILE).write_bytes(b"")
        for _ in range(2):
            with pytest.raises(StudyLocked, match="Stop it first"):
                ProcessLock(folder)
        holder.stdin.close()
        assert holder.wait(30) == 0
    ProcessLock(folder).release()


def test_a_killed_process_releases_its_lock(tmp_path):
    with held_elsewhere(tmp_path) as holder:
        with pytest.raises(StudyLocked):
            ProcessLock(tmp_path)
        holder.kill()
        holder.wait(30)
    hold = ProcessLock(tmp_path)
    with pytest.raises(StudyLocked):
        ProcessLock(tmp_path)
    hold.release()
    ProcessLock(tmp_path).release()
