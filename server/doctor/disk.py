"""Checks of the disk: can it be written, how fast does it sync, which file system is it?"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from lore_active.errors import LoreError
from server.clock import now
from server.doctor.finding import Finding, ok, problem, size, warning
from server.store.database import Database

ROUNDS = 20
SLOW_MS = 50.0
# No disk that survives a power failure syncs faster.
UNBELIEVABLE_MS = 0.02
LITTLE, TOO_LITTLE = 2e9, 200e6
NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "davfs", "9p", "virtiofs", "afs"),
    *("ceph", "glusterfs", "lustre", "beegfs", "gpfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs"),
)
MEMORY = ("tmpfs", "ramfs")
SYNCED = ("dropbox", "onedrive", "icloud", "google drive", "googledrive", "nextcloud", "owncloud")


def examine(folder: Path) -> Iterator[Finding]:
    """Check the disk that holds `folder`."""
    yield _sync(folder)
    yield _commit(folder)
    yield _kind(folder)
    yield _space(folder)


def _sync(folder: Path) -> Finding:
    """Write and sync in this folder, as happens for every answer."""
    file = folder / f".doctor-{secrets.token_hex(6)}"
    times: list[float] = []
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            for _ in range(ROUNDS):
                os.write(handle, b"\0" * 4096)
                begun = time.perf_counter()
                os.fsync(handle)
                times.append(1000 * (time.perf_counter() - begun))
        finally:
            os.close(handle)
            file.unlink()
    except OSError as error:
        return problem(
            "disk sync",
            f"{folder} cannot be written: {error.strerror}",
            "Run as the user who owns the folder, or move the study to a writable disk.",
        )
    middle, worst = statistics.median(times), max(times)
    timing = f"an answer is stored in {middle:.2f} ms (maximum of {ROUNDS}: {worst:.1f} ms)"
    if middle > SLOW_MS:
        return warning(
            "disk sync",
            timing,
            "Participants will have to wait for this disk. Use a faster, local one.",
        )
    if middle < UNBELIEVABLE_MS:
        return warning(
            "disk sync",
            timing + ", faster than any disk",
            "Syncing seems to be disabled, or the folder to be in memory: a power failure would "
            "lose answers. Use a physical disk.",
        )
    return ok("disk sync", timing)


def _commit(folder: Path) -> Finding:
    """Create a database like the study's own, with its locks and its write-ahead log."""
    file = folder / f".doctor-{secrets.token_hex(6)}.db"
    try:
        Database(file, now).close()
    except (LoreError, OSError) as error:
        return problem(
            "database",
            str(error),
            "SQLite cannot store data safely here. Use a local disk for studies.",
        )
    finally:
        for leftover in _beside(file):
            with contextlib.suppress(OSError):
                leftover.unlink()
    return ok("database", "SQLite works with safe settings: write-ahead log, full sync")


def _beside(file: Path) -> list[Path]:
    return [file, *(file.with_name(file.name + end) for end in ("-wal", "-shm", "-journal"))]


def _kind(folder: Path) -> Finding:
    whole = folder.resolve()
    for name in SYNCED:
        if name in str(whole).lower():
            return warning(
                "file system",
                f"{whole} looks like a cloud-synchronised folder ({name})",
                "Copies made while the database is being written can be corrupt. Keep running "
                "studies elsewhere, and copy them there once they have stopped.",
            )
    kind = kind_of(whole)
    if kind is None:
        return ok("file system", "its type is not available on this system")
    if kind in NETWORK:
        return warning(
            "file system",
            f"{kind}, a network file system",
            "Locking and syncing are unreliable there. Keep running studies on a local disk.",
        )
    if kind in MEMORY:
        return warning(
            "file system",
            f"{kind}, in memory",
            "All data are lost when the machine restarts. Keep studies on a disk.",
        )
    if kind == "overlay":
        return warning(
            "file system",
            "overlay, inside a container",
            "It is deleted with the container. Keep studies on a volume.",
        )
    return ok("file system", kind)


def kind_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of the file system that holds `folder`, if the system reports it."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, kind = -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        if not after:
            continue
        # A space in a path is written as \040.
        place = before.split()[4].replace("\\040", " ")
        if folder.is_relative_to(place) and len(place) >= best:
            best, kind = len(place), after.split()[0]
    return kind


def _space(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return problem("disk space", f"cannot be read: {error.strerror}", "Check the disk.")
    free_space = f"{size(free)} free"
    if free < TOO_LITTLE:
        return problem("disk space", free_space, "Free at least 2 GB for a study.")
    if free < LITTLE:
        return warning("disk space", free_space, "Free some: 2 GB allow for backups and exports.")
    return ok("disk space", free_space)
