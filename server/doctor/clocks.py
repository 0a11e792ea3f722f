"""Checks of the clocks: is the date plausible, the clock synchronised and free of jumps?"""

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
    """Check everything about time; `wall` in milliseconds since 1970, `steady` in seconds."""
    yield _date(wall(), folder)
    yield _jumps(wall, steady, rest)
    yield _synchronisation(synchronised())


def _date(ms: int, folder: Path | None) -> Finding:
    try:
        date = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return problem("date", f"{ms} ms since 1970", "Set the clock.")
    zone = datetime.now().astimezone()
    date_text = (
        f"{date:%Y-%m-%d %H:%M} UTC; this machine's time zone is {zone:%Z} (UTC{zone:%z}), "
        "records are in UTC"
    )
    # It cannot be earlier than the date of the program's own files.
    if ms / 1000 < Path(__file__).stat().st_mtime - 86400 or date.year >= LATEST_YEAR:
        return problem("date", date_text, "The clock is wrong. Set it before the study starts.")
    database = folder / DATABASE if folder else None
    if database and database.exists() and database.stat().st_mtime > ms / 1000 + 60:
        return warning(
            "date",
            date_text + f"; {DATABASE} was last written after that",
            "The clock was set back. Response times are safe; check the dates of answers.",
        )
    return ok("date", date_text)


def _jumps(
    wall: Callable[[], int], steady: Callable[[], float], rest: Callable[[float], None]
) -> Finding:
    wall_begun, steady_begun = wall(), steady()
    rest(WATCHED_SECONDS)
    gap = abs((wall() - wall_begun) / 1000 - (steady() - steady_begun))
    difference = f"system clock and monotonic clock differ by {1000 * gap:.0f} ms over 0.2 s"
    if gap > JUMP_SECONDS:
        return warning(
            "clock", difference, "The clock is being adjusted. Wait a minute, then run this again."
        )
    return ok("clock", difference)


def _synchronisation(state: bool | None) -> Finding:
    if state is None:
        return ok("time service", "synchronisation status is not available on this system")
    if state:
        return ok("time service", "the clock is synchronised")
    return warning(
        "time service",
        "the clock is not synchronised",
        "Enable network time (timedatectl set-ntp true, or chrony). Without a network, set the "
        "clock by hand before the study.",
    )


def synchronised() -> bool | None:
    """Return whether the kernel reports a synchronised clock; None if that is unknown."""
    if platform.system() != "Linux":
        return None
    try:
        # Without modes set this only reads and needs no privileges; the record has about 200 bytes.
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != UNSYNCHRONISED
