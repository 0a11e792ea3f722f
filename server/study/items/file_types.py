"""Validation of stimulus files: first bytes, headers and checksums; Pillow reads the images."""

from __future__ import annotations

import re
import warnings
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
# Pillow's name of the format of each image; it tries no other.
FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".gif": "GIF"}
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
    return _image_error(stream, extension) if extension in FORMATS else None


def _image_error(stream: BinaryIO, extension: str) -> str | None:
    """Read an image's header, and a PNG's checksums, without decoding pixels.

    Each process of a server loads the study, so decoding every image would delay its start; and no
    memory is allocated for the number of pixels that a header claims.
    """
    from PIL import Image, UnidentifiedImageError  # Only studies with images need it.

    name = MEDIA[extension][2]
    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Oddities that browsers accept are not errors.
            with Image.open(stream, formats=[FORMATS[extension]]) as image:
                width, height = image.size
                image.verify()
    except Image.DecompressionBombError as error:
        return f"a {name} of too many pixels ({error})"
    except UnidentifiedImageError:
        return f"a {name} without a valid header"
    except Exception as error:
        # Pillow's decoders raise errors of many classes for damaged files; those of the disk have
        # a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return f"a {name} that is damaged or truncated ({error})"
    if max(width, height) > MAX_PIXELS:
        return f"a {name} of {width} × {height} pixels (from 1 to {MAX_PIXELS} are allowed)"
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
