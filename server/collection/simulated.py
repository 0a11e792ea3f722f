"""Simulated participants: how the server recognises its own bots.

The supervisor draws a secret for each run and passes it to the web processes and the bots through
their environment. A bot sends it in a header when it arrives and is permanently marked as simulated
in the database. Because no one else knows the secret, no participant can pass as a bot, and none of
the bots can pass as a participant: a request with a wrong secret is rejected.
"""

from __future__ import annotations

import hmac
import os
import secrets

HEADER = "X-Lore-Active-Bot"
_VARIABLE = "LORE_ACTIVE_BOTS"


class WrongSecret(Exception):
    """A request that falsely claims to come from a bot of this server."""


def new_secret() -> str:
    """Draw the secret for one run of a server."""
    return secrets.token_urlsafe(32)


def environment(secret: str) -> dict[str, str]:
    """Environment variables for a process that must know the secret."""
    return {_VARIABLE: secret} if secret else {}


def take_secret() -> str:
    """Remove the secret from the environment and return it, so that no child inherits it."""
    return os.environ.pop(_VARIABLE, "")


def is_bot(given: str | None, secret: str) -> bool:
    """Whether a request came from a bot, by its header; WrongSecret if the secret is wrong."""
    if given is None:
        return False
    if not secret or not hmac.compare_digest(given.encode(), secret.encode()):
        raise WrongSecret
    return True
