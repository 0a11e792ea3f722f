"""How child processes end: when told to, or when whoever started them is gone."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

# People who may wait at the door before the system turns them away; it may allow fewer.
BACKLOG = 4096
# A child that ends with this code has written down why.
TOLD_WHY = 3
# One that ends with this code waits for something that is known already.
TRY_AGAIN = 4


def stop_signal() -> threading.Event:
    """An event that is set on SIGTERM, SIGINT, or when standard input closes.

    The supervisor holds the other end of standard input: however it dies, its children notice.
    """
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)

    def watch() -> None:
        # Not through sys.stdin: its lock would be held by this thread when the process ends.
        try:
            while os.read(0, 1):
                pass
        except OSError:
            pass
        stop.set()

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
    return stop
