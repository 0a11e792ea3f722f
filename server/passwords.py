"""The experimenter's password of a study: only a salted scrypt hash of it is kept."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import unicodedata
from pathlib import Path

from lore_active.errors import InvalidParameter

FILE = "password"
SHORTEST, LONGEST = 8, 1024
# 32 MB and some tens of milliseconds for each guess.
COST, BLOCK, PARALLEL = 2**15, 8, 1
LINE = re.compile(r"scrypt n=(\d{1,8}) r=(\d{1,2}) p=(\d{1,2}) ([0-9a-f]{32}) ([0-9a-f]{64})\n?")
# No letters or digits that look alike.
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def generate() -> str:
    """A password of 99 bits that can be read aloud and typed."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(5)) for _ in range(4))


def set_password(folder: Path, password: str) -> None:
    """Keep the hash of `password` in the study's folder, readable by its owner only."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidParameter(
            f"The password has {len(password)} characters, but must have from {SHORTEST} to "
            f"{LONGEST}."
        )
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


def verify(folder: Path, password: str) -> bool:
    """Whether this is the study's password; never, if the study has none that can be read."""
    if len(password) > LONGEST:
        return False
    try:
        with (folder / FILE).open(encoding="ascii") as stream:
            found = LINE.fullmatch(stream.read(300))
    except (OSError, UnicodeDecodeError):
        return False
    if found is None:
        return False
    cost, block, parallel = (int(part) for part in found.groups()[:3])
    salt, known = (bytes.fromhex(part) for part in found.groups()[3:])
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
