"""An audit in a thread of its own, so that nobody waits for it to be asked a question."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lore_active.learner.pending_audit import AuditCancelled, PendingAudit


class BackgroundAudit:
    """Runs an audit that was started after the step with the number `step`.

    Numerical work releases the interpreter lock, so a thread suffices. The thread ends with the
    process: an audit that was not taken in has left no trace, and is started again.
    """

    def __init__(self, pending: PendingAudit, step: int, timer: Callable[[], float]) -> None:
        self.pending = pending
        self.step = step
        self.seconds = 0.0
        self._timer = timer
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begun = self._timer()
        try:
            self.pending.run()
        except AuditCancelled:
            pass
        except BaseException as error:
            # Raised again by the worker, which stores what went wrong.
            self._error = error
        self.seconds = self._timer() - begun

    @property
    def finished(self) -> bool:
        """Whether the audit has ended, with a result or an error."""
        return not self._thread.is_alive()

    def raise_error(self) -> None:
        """Raise what ended the audit, if it was an error."""
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """End the audit without a result, and wait until it has ended."""
        self.pending.cancel()
        self._thread.join()
