"""The experimenter's password of a study: only a salted scrypt hash of it is kept."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import tempfile
import unicodedata
from pathlib import Path

from lore_active.errors import InvalidParameter, LoreError

# For containers and service managers; taken out of the environment before anything else starts.
VARIABLE = "LORE_ACTIVE_PASSWORD"
FILE = "password"
SHORTEST, LONGEST = 8, 1024
# 32 MB and some tens of milliseconds for each guess.
COST, BLOCK, PARALLEL = 2**15, 8, 1
NOBODYS = (COST, BLOCK, PARALLEL)
MIN_COST = 2**14 * 8
MIN_DIFFERENT = 5
# What examples, forms and people in a hurry write, without signs and digits at the end.
PLACEHOLDERS = {
    *("password", "passwort", "passphrase", "changeme", "changethis", "changeit", "replaceme"),
    *("secret", "mysecret", "topsecret", "default", "example", "placeholder", "yourpassword"),
    *("letmein", "welcome", "qwerty", "qwertyuiop", "iloveyou", "admin", "administrator", "root"),
    *("loreactive", "experimenter", "experiment", "researcher", "monitor", "study", "test"),
    *("testtest", "abcdefgh", "abcdefghi", "correcthorsebatterystaple"),
}
LINE = re.compile(r"scrypt n=(\d{1,8}) r=(\d{1,2}) p=(\d{1,2}) ([0-9a-f]{32}) ([0-9a-f]{64})\n?")
# No letters or digits that look alike.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class UnsafePassword(LoreError):
    """A study whose password would not keep anybody out; it is not served."""


def generate() -> str:
    """A password of 99 bits that can be read aloud and typed."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(4))


def set_password(folder: Path, password: str) -> None:
    """Keep the hash of `password` in the study's folder, readable by its owner only."""
    _refuse_weak(password, folder.name)
    salt = secrets.token_bytes(16)
    digest = _hash(password, salt, COST, BLOCK, PARALLEL)
    line = f"scrypt n={COST} r={BLOCK} p={PARALLEL} {salt.hex()} {digest.hex()}\n"
    # Written beside and moved over, so that no reader ever meets half a file.
    beside = folder / f".{FILE}.{secrets.token_hex(8)}"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(folder / FILE)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _refuse_weak(password: str, study: str) -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidParameter(
            f"The password has {len(password)} characters, but must have from {SHORTEST} to "
            f"{LONGEST}."
        )
    if len(set(password)) < MIN_DIFFERENT:
        raise InvalidParameter(
            f"The password is made of {len(set(password))} different characters, but must have "
            f"{MIN_DIFFERENT} or more."
        )
    plain = "".join(sign for sign in password.casefold() if sign.isalnum())
    named = "".join(sign for sign in study.casefold() if sign.isalnum())
    bare = plain.rstrip("0123456789")
    if plain.isdigit() or not bare or bare in PLACEHOLDERS or plain in (named, named * 2):
        raise InvalidParameter(
            "The password is one that everybody tries first: a placeholder, a number, or the "
            "study's name. `lore-active password` without --stdin makes a good one."
        )


def exists(folder: Path) -> bool:
    """Whether the study has a password."""
    return (folder / FILE).exists()


def prepare(folder: Path, given: str | None) -> None:
    """Make a study's password ready for serving: set the one given, if it is new; check the file.

    A study without any is served, and its monitor lets nobody in.
    """
    if given is not None and not verify(folder, given):
        try:
            set_password(folder, given)
        except InvalidParameter as error:
            raise UnsafePassword(f"{VARIABLE}: {error}") from None
    path = folder / FILE
    if not exists(folder):
        return
    again = f"Set one anew with: lore-active password {folder}"
    mode = path.stat().st_mode & 0o777
    if mode & 0o077 and _keeps_modes(folder):
        raise UnsafePassword(
            f"{path} has the mode {mode:o}, but must be 600: others on this machine could read "
            f"it. Run: chmod 600 {path}"
        )
    found = LINE.fullmatch(path.read_text(encoding="ascii", errors="replace")[:300])
    if found is None:
        raise UnsafePassword(f"{path} holds no hash of a password. {again}")
    if int(found[1]) * int(found[2]) < MIN_COST:
        raise UnsafePassword(f"{path} holds a hash that is too quick to guess. {again}")


def _keeps_modes(folder: Path) -> bool:
    """Whether files here can be kept from others at all: not on Windows, nor on its disks."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".mode-") as probe:
        return Path(probe.name).stat().st_mode & 0o077 == 0


def verify(folder: Path, password: str) -> bool:
    """Whether this is the study's password; never, if the study has none that can be read.

    It always takes as long as a wrong password does, so that time does not tell which it was.
    """
    if len(password) > LONGEST:
        return False
    try:
        with (folder / FILE).open(encoding="ascii") as stream:
            found = LINE.fullmatch(stream.read(300))
    except (OSError, UnicodeDecodeError):
        found = None
    cost, block, parallel = (int(part) for part in found.groups()[:3]) if found else NOBODYS
    salt, known = (bytes.fromhex(part) for part in (found.groups()[3:] if found else ("", "")))
    try:
        digest = _hash(password, salt, cost, block, parallel)
    except ValueError:  # parameters that scrypt refuses
        return False
    return hmac.compare_digest(digest, known)


def _hash(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    # One letter can be typed as one or two code points, depending on the keyboard.
    text = unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(
        text, salt=salt, n=cost, r=block, p=parallel, maxmem=256 * 1024 * 1024, dklen=32
    )
