"""Pages of a write-ahead log, even of a damaged or truncated one.

SQLite uses nothing after the first damaged frame. But each frame's checksum continues the one
before it, so that frames after the damage can be verified as well.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

MAGIC = (0x377F0682, 0x377F0683)
HEADER, FRAME_HEADER = 32, 24


@dataclass
class Log:
    """The usable part of a write-ahead log: pages by number, with their frame.

    `lost` says what was in it and cannot be used; empty if everything can.
    """

    pages: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    count: int = 0
    lost: str = ""


def read_log(log: bytes, index: bytes = b"") -> Log:
    """Read the pages of a log up to its last complete commit; `index` is the -shm file."""
    frames = _indexed(index)
    if len(log) < HEADER:
        return Log(lost=f"its {frames} frames are missing" if frames else "")
    magic, _, size, _, *salt = struct.unpack_from(">6I", log)
    if magic not in MAGIC or size < 512 or size & (size - 1):
        return Log(lost="its header is damaged")
    order = ">" if magic & 1 else "<"
    whole, rest = divmod(len(log) - HEADER, FRAME_HEADER + size)
    result, bad, current, pending = Log(), 0, 0, dict[int, tuple[int, bytes]]()
    sums: tuple[int, int] = struct.unpack_from(">2I", log, 24)
    for number in range(1, whole + 1):
        start = HEADER + (number - 1) * (FRAME_HEADER + size)
        page, commit, *held = struct.unpack_from(">6I", log, start)
        data = log[start + FRAME_HEADER : start + FRAME_HEADER + size]
        expected = _checksum(log[start : start + 8] + data, *sums, order)
        sums = (held[2], held[3])
        if held[:2] != salt:
            continue
        current = number
        if expected != sums or not page:
            bad += 1
            continue
        pending[page] = (number, data)
        if commit:
            result.pages |= pending
            result.count, pending = commit, {}
    begun = log[len(log) - rest :][8:16] == struct.pack(">2I", *salt) if rest >= 16 else False
    if bad:
        result.lost = f"{bad} of its {current} frames are damaged"
    elif max(frames, current + begun) > current:
        result.lost = f"it ends after frame {current} of {max(frames, current + 1)}"
    elif pending:
        result.lost = f"it ends within a commit, at frame {current}"
    return result


def _indexed(index: bytes) -> int:
    """Return how many frames the log had according to its index; 0 if unknown."""
    if len(index) < 136 or index[:48] != index[48:96] or not index[12]:
        return 0
    (newest,) = struct.unpack_from("=I", index, 16)
    (copied,) = struct.unpack_from("=I", index, 96)
    return int(newest) if copied < newest else 0


def _checksum(content: bytes, first: int, second: int, order: str) -> tuple[int, int]:
    """Continue SQLite's checksum, in which every number is added to the two sums before it.

    The last sums are therefore those of the numbers times Fibonacci numbers, modulo 2³².
    """
    numbers = np.frombuffer(content, f"{order}u4").astype(np.uint32)
    last, one_before = (
        int(np.dot(numbers[:end], _fibonacci(end)[-2::-1]))
        + second * int(_fibonacci(end)[-1])
        + first * int(_fibonacci(end)[-2])
        for end in (len(numbers), len(numbers) - 1)
    )
    return one_before & 0xFFFFFFFF, last & 0xFFFFFFFF


@cache
def _fibonacci(count: int) -> NDArray[np.uint32]:
    """Return 1, 1, 2, 3, … modulo 2³², with one number more than `count`."""
    found = [1, 1]
    while len(found) <= count:
        found.append((found[-1] + found[-2]) & 0xFFFFFFFF)
    return np.array(found, dtype=np.uint32)
