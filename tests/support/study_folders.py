"""Study folders to try things on: the smallest that is valid, and files of every kind."""

from __future__ import annotations

import io
import struct

from PIL import Image

from server.study.loading import check
from server.study.samples import png


def write(folder, files):
    """Write files, by their path inside `folder`, from text or bytes."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def small_study(folder, toml="", **files):
    """A study of four words that checks; `toml` follows the title."""
    words = {f"stimuli/{word}.txt": word for word in ("red", "green", "blue", "grey")}
    return write(folder, {"study.toml": f'title = "Words"\n{toml}', **words, **files})


def messages_of(folder):
    """Every message that a folder gives."""
    return [str(problem) for problem in check(folder)]


def only(folder):
    """The one message that a folder with one mistake gives."""
    messages = messages_of(folder)
    assert len(messages) == 1, messages
    assert messages[0].endswith((".", "?"))
    assert "\n" not in messages[0]
    return messages[0]


def image(format, width=20, height=10):
    """The content of an image file of one colour."""
    content = io.BytesIO()
    Image.new("RGB", (width, height), (1, 2, 3)).save(content, format)
    return content.getvalue()


def riff(kind, content):
    return b"RIFF" + struct.pack("<I", 4 + len(content)) + kind + content


def page(content):
    return b"OggS" + bytes(24) + content


SOUND_FILES = {
    ".png": png.patch(1, 2, 3, side=4),
    ".jpg": image("JPEG"),
    ".jpeg": image("JPEG", height=11),
    ".gif": image("GIF"),
    ".webp": image("WEBP"),
    ".wav": riff(b"WAVE", b"fmt " + bytes(20)),
    ".mp3": b"\xff\xfb\x90\x00" + bytes(100),
    ".ogg": page(b"\x01vorbis"),
    ".oga": page(b"\x7fFLAC"),
    ".opus": page(b"OpusHead"),
    ".flac": b"fLaC" + bytes(40),
    ".m4a": b"\0\0\0\x20ftypM4A " + bytes(20),
    ".mp4": b"\0\0\0\x20ftypisom" + bytes(20),
    ".webm": b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm" + bytes(20),
    ".txt": b"a word",
}
