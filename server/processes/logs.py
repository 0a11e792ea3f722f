"""Logs of the server's processes: one format on standard error, one level for all of them."""

from __future__ import annotations

import logging
import os

LEVELS = ("debug", "info", "warning", "error")
DEFAULT = "warning"
# The supervisor passes the level on to the processes that it starts.
VARIABLE = "LORE_ACTIVE_LOG_LEVEL"
FORMAT = "%(asctime)s %(levelname)s {process} %(process)d, %(name)s: %(message)s"


def pass_on(level: str) -> None:
    """Set the level for the processes that this one starts."""
    os.environ[VARIABLE] = level


def configure(process: str) -> None:
    """Write the logs of this process to standard error; `process` says which one it is.

    An unknown level, which can only come from the environment, counts as the default.
    """
    chosen = os.environ.get(VARIABLE, DEFAULT).lower()
    level = chosen if chosen in LEVELS else DEFAULT
    logging.basicConfig(level=level.upper(), format=FORMAT.format(process=process), force=True)
    # Requests that wait briefly are normal.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    # It logs every instruction that it compiles.
    logging.getLogger("numba").setLevel(logging.WARNING)
