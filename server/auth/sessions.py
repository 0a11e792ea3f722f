"""Who may look at a study and steer it: passwords, sessions, links for looking, throttling."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lore_active.errors import InvalidParameter
from server.auth import passwords
from server.store import access, collection
from server.store.database import Connection, Database

Role = Literal["experimenter", "reader"]

HOUR_MS = 3_600_000
IDLE_MS = 12 * HOUR_MS
MAX_MS = 7 * 24 * HOUR_MS
# Writing `seen_at` at every look would make every look a write.
TOUCH_MS = 60_000
# Mistypings are free; then every wrong password doubles the wait.
FREE_FAILURES = 5
FIRST_WAIT_MS = 5_000
MAX_WAIT_MS = 15 * 60_000
FORGET_MS = 24 * HOUR_MS
MAX_NAME = 80


@dataclass(frozen=True)
class ExperimenterSession:
    """Somebody who may look, or look and steer; their forms carry `csrf`."""

    role: Role
    who: str
    csrf: str


@dataclass(frozen=True)
class SignedIn:
    """The token that the browser keeps."""

    token: str


@dataclass(frozen=True)
class Refused:
    """No entry. `wait_ms` is how long any password from there will be refused unread."""

    why: Literal["wrong", "wait"]
    wait_ms: int = 0


class Access:
    """One study's doors."""

    def __init__(self, database: Database, folder: Path, clock: Callable[[], int]) -> None:
        self.database = database
        self.folder = folder
        self.clock = clock

    # ---- experimenters --------------------------------------------------------------------------

    def sign_in(
        self, password: str, who: str, address: str, old_token: str = ""
    ) -> SignedIn | Refused:
        """A new session for somebody who knows the password; the browser's old one ends."""
        place, now = network(address), self.clock()
        lock = self._lock()
        right, refused = self._try(password, place, now)
        # Without a password, a study lets nobody in, and does not say so either.
        if not (right and lock):
            return refused
        token = secrets.token_urlsafe(32)
        name = " ".join(who.split())[:MAX_NAME] or "experimenter"

        def enter(c: Connection) -> None:
            access.forget_failures(c, now - FORGET_MS, place)
            access.end_old_sessions(c, now - MAX_MS, now - IDLE_MS)
            if old_token:
                access.end_session(c, hashed(old_token))
            access.add_session(c, hashed(token), name, secrets.token_urlsafe(24), lock, now)

        self.database.write(enter)
        return SignedIn(token)

    def refuse(self, password: str, name: str, address: str) -> Refused:
        """What a name that no study has is told, after all the work that a wrong password makes.

        Neither what it says nor how long it takes tells which names there are.
        """
        # Attempts at one name are counted as a study of that name would; few rows for all names.
        place = f"{network(address)} {hashed(name)[:3]}"
        return self._try(password, place, self.clock())[1]

    def _try(self, password: str, place: str, now: int) -> tuple[bool, Refused]:
        """Whether the password is right, and how it is refused if it is not."""
        wait = self.database.write(lambda c: self._count_attempt(c, place, now))
        if wait is None:
            return False, Refused("wait", self.database.read(lambda c: self._wait(c, place, now)))
        return passwords.verify(self.folder, password), Refused("wrong", wait)

    def _count_attempt(self, c: Connection, place: str, now: int) -> int | None:
        """Count it as wrong before looking at it, so that many at once do not slip through.

        Gives the wait that follows if it is wrong; None if it comes too early to be looked at.
        """
        if self._wait(c, place, now) > 0:
            return None
        count, last = access.failures(c, place)
        count = 1 if now - last > FORGET_MS else count + 1
        access.forget_failures(c, now - FORGET_MS)
        access.set_failures(c, place, count, now)
        return wait_after(count)

    def _wait(self, c: Connection, place: str, now: int) -> int:
        count, last = access.failures(c, place)
        # A clock that was set back must not shut anybody out until it has caught up.
        return max(0, last + wait_after(count) - now) if last <= now else 0

    def session(self, token: str) -> ExperimenterSession | None:
        """Whose token this is, if it still holds."""
        key, now = hashed(token), self.clock()
        row = self.database.read(lambda c: access.session(c, key))
        if row is None or row.lock != self._lock():
            return None
        if now - row.created_at > MAX_MS or abs(now - row.seen_at) > IDLE_MS:
            # Seen in the future: the clock was set back, and would let them in until then.
            return None
        if now - row.seen_at > TOUCH_MS:
            # Not waited for: pages stay readable while nothing can be written.
            self.database.writer.submit(lambda c: access.touch_session(c, key, now))
        return ExperimenterSession("experimenter", row.who, row.csrf)

    def sign_out(self, token: str) -> None:
        """The token is worth nothing from now on."""
        self.database.write(lambda c: access.end_session(c, hashed(token)))

    def _lock(self) -> str:
        """A digest of the password's record: whoever came in with another must sign in again."""
        try:
            return hashlib.sha256((self.folder / passwords.FILE).read_bytes()).hexdigest()
        except OSError:
            return ""

    # ---- people who only look -------------------------------------------------------------------

    def reader(self, token: str) -> ExperimenterSession | None:
        """Somebody who came by a link for looking, unless it was revoked."""
        good = self.database.read(lambda c: access.link_is_good(c, hashed(token)))
        return ExperimenterSession("reader", "", "") if good else None

    def make_link(self, who: str, label: str) -> str:
        """A new link's token; it is shown once and kept nowhere."""
        token, now = secrets.token_urlsafe(24), self.clock()
        name = " ".join(label.split())[:MAX_NAME] or "no name"

        def work(c: Connection) -> None:
            number = access.add_link(c, hashed(token), name, who, now)
            collection.add_event(c, "link", who, now, link=number, label=name)

        self.database.write(work)
        return token

    def links(self) -> list[access.Link]:
        """All links for looking, newest first."""
        return self.database.read(access.links)

    def revoke_link(self, who: str, number: int) -> None:
        """Shut out everybody who came by this link."""
        now = self.clock()

        def work(c: Connection) -> None:
            if not access.revoke_link(c, number, now):
                raise InvalidParameter(f"There is no link {number} that could be revoked.")
            collection.add_event(c, "revoke link", who, now, link=number)

        self.database.write(work)


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def wait_after(failures: int) -> int:
    """Milliseconds during which nothing is tried after so many wrong passwords."""
    if failures < FREE_FAILURES:
        return 0
    doublings = min(failures - FREE_FAILURES, 20)
    return int(min(MAX_WAIT_MS, FIRST_WAIT_MS * 2**doublings))


def network(address: str) -> str:
    """Where somebody comes from: an IPv6 user has a whole network of addresses to try from."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)
