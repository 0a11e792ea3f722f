"""Validation of stimulus files: first bytes, completeness and size in the header."""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from server.study.config import Kind

# By file extension: the kind of item, the media type, and a description.
MEDIA: dict[str, tuple[Kind, str, str]] = {
    ".txt": ("text", "text/plain; charset=utf-8", "text"),
    ".png": ("image", "image/png", "PNG image"),
    ".jpg": ("image", "image/jpeg", "JPEG image"),
    ".jpeg": ("image", "image/jpeg", "JPEG image"),
    ".webp": ("image", "image/webp", "WebP image"),
    ".gif": ("image", "image/gif", "GIF image"),
    ".mp3": ("audio", "audio/mpeg", "MP3 audio file"),
    ".wav": ("audio", "audio/wav", "WAV audio file"),
    ".ogg": ("audio", "audio/ogg", "Ogg audio file"),
    ".oga": ("audio", "audio/ogg", "Ogg audio file"),
    ".opus": ("audio", "audio/ogg", "Opus audio file"),
    ".flac": ("audio", "audio/flac", "FLAC audio file"),
    ".m4a": ("audio", "audio/mp4", "M4A audio file"),
    ".mp4": ("video", "video/mp4", "MP4 video"),
    ".webm": ("video", "video/webm", "WebM video"),
}
# Browsers cannot display larger images; a header with more is almost certainly damaged.
MAX_PIXELS = 16_384
HEAD = 4096

MP3 = re.compile(rb"ID3|\xff[\xe2-\xe7\xf2-\xff][\x00-\xef]", re.DOTALL)


def content_error(stream: BinaryIO, extension: str, size: int) -> str | None:
    """Say why this file of `size` bytes does not match its extension; None if it does."""
    head = stream.read(HEAD)
    name = MEDIA[extension][2]
    if not _begins_right(head, extension):
        return f"not a valid {name}: its first bytes are {head[:8].hex(' ')}"
    if head[:4] == b"RIFF" and int.from_bytes(head[4:8], "little") + 8 > size:
        return f"a {name} truncated after {size} bytes"
    if extension == ".png" and not _png_is_whole(stream, size):
        return f"a {name} truncated after {size} bytes"
    if MEDIA[extension][0] != "image":
        return None
    pixels = _pixels(stream, head, extension)
    if pixels is None:
        return f"a {name} without a size in its header"
    if not all(0 < side <= MAX_PIXELS for side in pixels):
        return f"a {name} of {pixels[0]} × {pixels[1]} pixels (from 1 to {MAX_PIXELS} are allowed)"
    return None


def _begins_right(head: bytes, extension: str) -> bool:
    # `opus` and `webm` are stricter than their containers, which browsers play less reliably.
    match extension:
        case ".png":
            return head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR"
        case ".jpg" | ".jpeg":
            return head.startswith(b"\xff\xd8\xff")
        case ".gif":
            return head.startswith((b"GIF87a", b"GIF89a"))
        case ".webp":
            return head.startswith(b"RIFF") and head[8:12] == b"WEBP"
        case ".wav":
            return head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE"
        case ".mp3":
            return MP3.match(head) is not None
        case ".ogg" | ".oga":
            return head.startswith(b"OggS")
        case ".opus":
            return head.startswith(b"OggS") and b"OpusHead" in head
        case ".flac":
            return head.startswith(b"fLaC")
        case ".m4a" | ".mp4":
            return head[4:8] == b"ftyp"
        case ".webm":
            return head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head
    return False


def _png_is_whole(stream: BinaryIO, size: int) -> bool:
    """Return whether the chunks lead to the final one, as in a file that is not truncated."""
    at = 8
    while at + 12 <= size:
        stream.seek(at)
        chunk = stream.read(8)
        at += 12 + int.from_bytes(chunk[:4], "big")
        if chunk[4:] == b"IEND":
            return at <= size
    return False


def _pixels(stream: BinaryIO, head: bytes, extension: str) -> tuple[int, int] | None:
    """Return width and height according to the header."""
    try:
        match extension:
            case ".png":
                width, height = struct.unpack_from(">II", head, 16)
            case ".gif":
                width, height = struct.unpack_from("<HH", head, 6)
            case ".webp":
                return _webp_pixels(head)
            case _:
                return _jpeg_pixels(stream)
    except struct.error:
        return None
    return width, height


def _webp_pixels(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8X":
            sides = struct.unpack_from("<3s3s", head, 24)
            return int.from_bytes(sides[0], "little") + 1, int.from_bytes(sides[1], "little") + 1
        case b"VP8L" if head[20:21] == b"\x2f":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_pixels(stream: BinaryIO) -> tuple[int, int] | None:
    """Skip segments up to the one that starts a frame."""
    at = 2
    while True:
        stream.seek(at)
        segment = stream.read(9)
        if len(segment) < 9 or segment[0] != 0xFF:
            return None
        marker = segment[1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD8:
            at += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", segment, 5)
            return width, height
        elif marker in (0xD9, 0xDA):
            return None
        else:
            at += 2 + max(2, int.from_bytes(segment[2:4], "big"))
