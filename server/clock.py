"""The only clock: milliseconds since 1970, passed in wherever the time is needed."""

from __future__ import annotations

import time


def now() -> int:
    """Return the time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
