"""Write a PNG image of one colour without a graphics library."""

from __future__ import annotations

import struct
import zlib


def patch(red: int, green: int, blue: int, side: int = 240) -> bytes:
    """Content of a PNG file that shows a square of one sRGB colour (channels from 0 to 255)."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)  # 8 bits, RGB, no interlace
    row = b"\0" + bytes((red, green, blue)) * side
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"sRGB", b"\0"),  # so that no viewer guesses another colour space
            _chunk(b"IDAT", zlib.compress(row * side, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
