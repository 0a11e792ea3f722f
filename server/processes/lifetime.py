"""How child processes end: when told to, or when whoever started them is gone."""

from __future__ import annotations

import os
import signal
import threading
from queue import SimpleQueue
from types import FrameType

# People who may wait at the door before the system turns them away; it may allow fewer.
BACKLOG = 4096
# A child that ends with this code has written down why.
TOLD_WHY = 3
# One that ends with this code waits for something that is known already.
TRY_AGAIN = 4


def set_by_signals() -> threading.Event:
    """An event that is set on SIGTERM and SIGINT.

    Not by the handler itself: it runs in the main thread, which may just then be about to wait for
    the event and hold its lock, so that both would wait for ever.
    """
    stop = threading.Event()
    # Unlike an event's, its lock may be asked for again by a handler that interrupts.
    signals: SimpleQueue[int] = SimpleQueue()

    def on_signal(number: int, frame: FrameType | None) -> None:
        signals.put(number)

    def pass_on() -> None:
        signals.get()
        stop.set()

    threading.Thread(target=pass_on, name="signals", daemon=True).start()
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


def stop_signal() -> threading.Event:
    """An event that is set on SIGTERM, SIGINT, or when standard input closes.

    The supervisor holds the other end of standard input: however it dies, its children notice.
    """
    stop = set_by_signals()

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
