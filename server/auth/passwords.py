"""The experimenter's password of a study, stored only as a salted scrypt hash."""

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

# For containers and service managers; removed from the environment before anything else starts.
VARIABLE = "LORE_ACTIVE_PASSWORD"
FILE = "password"
SHORTEST, LONGEST = 8, 1024
# 32 MB and tens of milliseconds per guess.
COST, BLOCK, PARALLEL = 2**15, 8, 1
NOBODYS = (COST, BLOCK, PARALLEL)
MIN_COST = 2**14 * 8
MIN_DIFFERENT = 5
# Common placeholders, without punctuation and trailing digits.
PLACEHOLDERS = {
    *("password", "passwort", "passphrase", "changeme", "changethis", "changeit", "replaceme"),
    *("secret", "mysecret", "topsecret", "default", "example", "placeholder", "yourpassword"),
    *("letmein", "welcome", "qwerty", "qwertyuiop", "iloveyou", "admin", "administrator", "root"),
    *("loreactive", "experimenter", "experiment", "researcher", "monitor", "study", "test"),
    *("testtest", "abcdefgh", "abcdefghi", "correcthorsebatterystaple"),
}
LINE = re.compile(r"scrypt n=(\d{1,8}) r=(\d{1,2}) p=(\d{1,2}) ([0-9a-f]{32}) ([0-9a-f]{64})\n?")
# Without letters and digits that look alike.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class UnsafePassword(LoreError):
    """The study's password is not safe, so that it is not served."""


def generate() -> str:
    """Generate a password of 99 bits that is easy to read aloud and type."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(4))


def set_password(folder: Path, password: str) -> None:
    """Store the hash of `password` in the study folder, readable only by its owner."""
    _refuse_weak(password, folder.name)
    salt = secrets.token_bytes(16)
    digest = _hash(password, salt, COST, BLOCK, PARALLEL)
    line = f"scrypt n={COST} r={BLOCK} p={PARALLEL} {salt.hex()} {digest.hex()}\n"
    # Written to a temporary file and renamed, so that it is never read half-written.
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
    plain = "".join(character for character in password.casefold() if character.isalnum())
    named = "".join(character for character in study.casefold() if character.isalnum())
    bare = plain.rstrip("0123456789")
    if plain.isdigit() or not bare or bare in PLACEHOLDERS or plain in (named, named * 2):
        raise InvalidParameter(
            "The password is easy to guess: a placeholder, a number, or the study's name. "
            "`lore-active password` without --stdin generates a good one."
        )


def exists(folder: Path) -> bool:
    """Return whether the study has a password."""
    return (folder / FILE).exists()


def prepare(folder: Path, given: str | None) -> None:
    """Prepare a study's password for serving: set the given one if it is new; check the file.

    A study without a password is served, but its monitor cannot be opened.
    """
    if given is not None and not verify(folder, given):
        try:
            set_password(folder, given)
        except InvalidParameter as error:
            raise UnsafePassword(f"{VARIABLE}: {error}") from None
    path = folder / FILE
    if not exists(folder):
        return
    advice = f"Set a new one with: lore-active password {folder}"
    mode = path.stat().st_mode & 0o777
    if mode & 0o077 and _keeps_modes(folder):
        raise UnsafePassword(
            f"{path} has the mode {mode:o}, but must be 600: other users of this machine could "
            f"read it. Run: chmod 600 {path}"
        )
    match = LINE.fullmatch(path.read_text(encoding="ascii", errors="replace")[:300])
    if match is None:
        raise UnsafePassword(f"{path} does not contain a password hash. {advice}")
    if int(match[1]) * int(match[2]) < MIN_COST:
        raise UnsafePassword(f"{path} contains a hash that is too fast to guess. {advice}")


def _keeps_modes(folder: Path) -> bool:
    """Return whether the file system supports private files, which Windows does not."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".mode-") as probe:
        return Path(probe.name).stat().st_mode & 0o077 == 0


def verify(folder: Path, password: str) -> bool:
    """Return whether this is the study's password; False if it has none that can be read.

    It always takes the same time, which therefore reveals nothing.
    """
    if len(password) > LONGEST:
        return False
    try:
        with (folder / FILE).open(encoding="ascii") as stream:
            match = LINE.fullmatch(stream.read(300))
    except (OSError, UnicodeDecodeError):
        match = None
    cost, block, parallel = (int(part) for part in match.groups()[:3]) if match else NOBODYS
    salt, known = (bytes.fromhex(part) for part in (match.groups()[3:] if match else ("", "")))
    try:
        digest = _hash(password, salt, cost, block, parallel)
    except ValueError:  # parameters that scrypt rejects
        return False
    return hmac.compare_digest(digest, known)


def _hash(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    # A character can be typed as one or two code points, depending on the keyboard.
    text = unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(
        text, salt=salt, n=cost, r=block, p=parallel, maxmem=256 * 1024 * 1024, dklen=32
    )
