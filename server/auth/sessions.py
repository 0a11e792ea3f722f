"""Authentication of a study: sign-in, sessions, view-only links, throttling."""

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
# Writing `seen_at` at every request would make every read a write.
TOUCH_MS = 60_000
# A few typing errors are free; then every wrong password doubles the wait.
FREE_FAILURES = 5
FIRST_WAIT_MS = 5_000
MAX_WAIT_MS = 15 * 60_000
FORGET_MS = 24 * HOUR_MS
MAX_NAME = 80


@dataclass(frozen=True)
class ExperimenterSession:
    """An authenticated experimenter or viewer; their forms carry `csrf`."""

    role: Role
    who: str
    csrf: str


@dataclass(frozen=True)
class SignedIn:
    """Successful sign-in: the token for the browser."""

    token: str


@dataclass(frozen=True)
class Refused:
    """Failed sign-in. For `wait_ms`, any password from this address is refused unread."""

    why: Literal["wrong", "wait"]
    wait_ms: int = 0


class Access:
    """Authentication of one study."""

    def __init__(self, database: Database, folder: Path, clock: Callable[[], int]) -> None:
        self.database = database
        self.folder = folder
        self.clock = clock

    # ---- experimenters --------------------------------------------------------------------------

    def sign_in(
        self, password: str, who: str, address: str, old_token: str = ""
    ) -> SignedIn | Refused:
        """Start a session if the password is correct; end the browser's old one."""
        place, now = network(address), self.clock()
        lock = self._lock()
        right, refused = self._try(password, place, now)
        # A study without a password rejects every sign-in, without saying why.
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
        """Refuse a sign-in to a study that does not exist, with the work of a wrong password.

        Neither the message nor the time reveals which studies exist.
        """
        # Counted per name, as for a study of that name, but with a limited number of rows.
        place = f"{network(address)} {hashed(name)[:3]}"
        return self._try(password, place, self.clock())[1]

    def _try(self, password: str, place: str, now: int) -> tuple[bool, Refused]:
        """Return whether the password is correct, and the refusal if it is not."""
        wait = self.database.write(lambda c: self._count_attempt(c, place, now))
        if wait is None:
            return False, Refused("wait", self.database.read(lambda c: self._wait(c, place, now)))
        return passwords.verify(self.folder, password), Refused("wrong", wait)

    def _count_attempt(self, c: Connection, place: str, now: int) -> int | None:
        """Count the attempt as failed before checking it, so that parallel ones are throttled.

        Returns the wait that follows if it is wrong; None if it comes too early to be checked.
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
        # After the clock was set back, no one must be locked out until it has caught up.
        return max(0, last + wait_after(count) - now) if last <= now else 0

    def session(self, token: str) -> ExperimenterSession | None:
        """Return the session of a token, if it is still valid."""
        key, now = hashed(token), self.clock()
        row = self.database.read(lambda c: access.session(c, key))
        if row is None or row.lock != self._lock():
            return None
        if now - row.created_at > MAX_MS or abs(now - row.seen_at) > IDLE_MS:
            # Seen in the future: the clock was set back, and the session would last until then.
            return None
        if now - row.seen_at > TOUCH_MS:
            # Without waiting: pages stay readable while nothing can be written.
            self.database.writer.submit(lambda c: access.touch_session(c, key, now))
        return ExperimenterSession("experimenter", row.who, row.csrf)

    def sign_out(self, token: str) -> None:
        """End the session of a token."""
        self.database.write(lambda c: access.end_session(c, hashed(token)))

    def _lock(self) -> str:
        """Return a digest of the password file; after a change, sessions end."""
        try:
            return hashlib.sha256((self.folder / passwords.FILE).read_bytes()).hexdigest()
        except OSError:
            return ""

    # ---- viewers --------------------------------------------------------------------------------

    def reader(self, token: str) -> ExperimenterSession | None:
        """Return the viewer of a view-only link, unless it was revoked."""
        good = self.database.read(lambda c: access.link_is_good(c, hashed(token)))
        return ExperimenterSession("reader", "", "") if good else None

    def make_link(self, who: str, label: str) -> str:
        """Create a link and return its token, which is shown once and not stored."""
        token, now = secrets.token_urlsafe(24), self.clock()
        name = " ".join(label.split())[:MAX_NAME] or "no name"

        def work(c: Connection) -> None:
            number = access.add_link(c, hashed(token), name, who, now)
            collection.add_event(c, "link", who, now, link=number, label=name)

        self.database.write(work)
        return token

    def links(self) -> list[access.Link]:
        """List all view-only links, newest first."""
        return self.database.read(access.links)

    def revoke_link(self, who: str, number: int) -> None:
        """Revoke a link; all its viewers lose access."""
        now = self.clock()

        def work(c: Connection) -> None:
            if not access.revoke_link(c, number, now):
                raise InvalidParameter(f"There is no link {number} to revoke.")
            collection.add_event(c, "revoke link", who, now, link=number)

        self.database.write(work)


def hashed(token: str) -> str:
    """Return the hash of a token, which is stored in its place."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def wait_after(failures: int) -> int:
    """Return the wait in milliseconds after this many wrong passwords."""
    if failures < FREE_FAILURES:
        return 0
    doublings = min(failures - FREE_FAILURES, 20)
    return int(min(MAX_WAIT_MS, FIRST_WAIT_MS * 2**doublings))


def network(address: str) -> str:
    """Return the network of an address, since an IPv6 user has a whole network of addresses."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)
