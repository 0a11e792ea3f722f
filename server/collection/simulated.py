"""Simulated participants: how this server's own bots are told from people.

Whoever starts the server draws a secret for each run and hands it to its web processes and to its
bots, in their environment. A bot sends it along when it arrives, and is marked as simulated in the
database, for good. Nobody else knows it, so no person can pass for a bot and no bot of ours for a
person: one that sends a wrong secret is turned away.
"""

from __future__ import annotations

import hmac
import os
import secrets

HEADER = "X-Lore-Active-Bot"
_VARIABLE = "LORE_ACTIVE_BOTS"


class WrongSecret(Exception):
    """A request that claims to come from a bot of this server, and does not."""


def new_secret() -> str:
    """For one run of a server."""
    return secrets.token_urlsafe(32)


def environment(secret: str) -> dict[str, str]:
    """What a process is started with that must know the secret."""
    return {_VARIABLE: secret} if secret else {}


def take_secret() -> str:
    """The secret that this process was started with; nothing that it starts gets it too."""
    return os.environ.pop(_VARIABLE, "")


def is_bot(given: str | None, secret: str) -> bool:
    """Whether a request came from a bot, by the header that it has; WrongSecret if it lies."""
    if given is None:
        return False
    if not secret or not hmac.compare_digest(given.encode(), secret.encode()):
        raise WrongSecret
    return True
