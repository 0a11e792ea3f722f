"""The only clock: milliseconds since 1970, passed to whoever needs the time."""

from __future__ import annotations

import time


def now() -> int:
    """The time, in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
