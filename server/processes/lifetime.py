"""How child processes end: by a signal, or when their parent process is gone."""

from __future__ import annotations

import os
import signal
import threading
from queue import SimpleQueue
from types import FrameType

# Connections that may wait to be accepted before the system refuses more; it may allow fewer.
BACKLOG = 4096
# Exit code of a child that has recorded why it ended.
TOLD_WHY = 3
# Exit code of a child that waits for a problem that is already known.
TRY_AGAIN = 4


def set_by_signals() -> threading.Event:
    """Return an event that is set on SIGTERM and SIGINT.

    The handler does not set it itself: it runs in the main thread, which may be about to wait for
    the event and hold its lock, which would be a deadlock.
    """
    stop = threading.Event()
    # Unlike an event, it is reentrant: a signal handler may use it.
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
    """Return an event that is set on SIGTERM, SIGINT, or when standard input closes.

    The supervisor holds the other end of standard input: however it dies, its children notice.
    """
    stop = set_by_signals()
    if hasattr(signal, "SIGTTOU"):
        # In a process group of its own, so that a terminal set to `tostop` would stop it when it
        # writes to its log.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def watch() -> None:
        # Not by sys.stdin, whose lock this thread would hold when the process ends.
        try:
            while os.read(0, 1):
                pass
        except OSError:
            pass
        stop.set()

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
    return stop
