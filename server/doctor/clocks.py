"""The clocks: is the date believable, is it kept right, does it run evenly?"""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from server.clock import now
from server.doctor.finding import Finding, ok, problem, warning
from server.study.workspace import DATABASE

LATEST_YEAR = 2100
WATCHED_SECONDS = 0.2
JUMP_SECONDS = 0.05
UNSYNCHRONISED = 5  # what adjtimex calls TIME_ERROR


def examine(
    folder: Path | None,
    wall: Callable[[], int] = now,
    steady: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> Iterator[Finding]:
    """Everything about time; `wall` in milliseconds since 1970, `steady` in seconds."""
    yield _date(wall(), folder)
    yield _evenness(wall, steady, rest)
    yield _kept_right(synchronised())


def _date(ms: int, folder: Path | None) -> Finding:
    try:
        date = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return problem("date", f"{ms} ms since 1970", "Set the clock.")
    zone = datetime.now().astimezone()
    found = (
        f"{date:%Y-%m-%d %H:%M} UTC; this machine's time zone is {zone:%Z} (UTC{zone:%z}), "
        "records are in UTC"
    )
    # The program cannot be older than its own files.
    if ms / 1000 < Path(__file__).stat().st_mtime - 86400 or date.year >= LATEST_YEAR:
        return problem("date", found, "The clock is wrong. Set it before anybody answers.")
    database = folder / DATABASE if folder else None
    if database and database.exists() and database.stat().st_mtime > ms / 1000 + 60:
        return warning(
            "date",
            found + f"; {DATABASE} was last written after that",
            "The clock was set back. Response times are safe; check the dates of answers.",
        )
    return ok("date", found)


def _evenness(
    wall: Callable[[], int], steady: Callable[[], float], rest: Callable[[float], None]
) -> Finding:
    wall_begun, steady_begun = wall(), steady()
    rest(WATCHED_SECONDS)
    gap = abs((wall() - wall_begun) / 1000 - (steady() - steady_begun))
    found = f"wall clock and steady clock differ by {1000 * gap:.0f} ms over a fifth of a second"
    if gap > JUMP_SECONDS:
        return warning(
            "clock", found, "Something is setting the clock. Wait until that is done, then again."
        )
    return ok("clock", found)


def _kept_right(state: bool | None) -> Finding:
    if state is None:
        return ok("time service", "whether one keeps the clock right cannot be read here")
    if state:
        return ok("time service", "the clock is kept right")
    return warning(
        "time service",
        "nothing keeps the clock right",
        "Switch on network time (timedatectl set-ntp true, or chrony). Without a network, set the "
        "clock by hand before the study.",
    )


def synchronised() -> bool | None:
    """Whether the kernel says that its clock is set by a time service; None: cannot be told."""
    if platform.system() != "Linux":
        return None
    try:
        # Asking only (no modes set) needs no rights; the record is about 200 bytes long.
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != UNSYNCHRONISED
