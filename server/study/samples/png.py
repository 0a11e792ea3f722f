"""Sample images: PNG files of one colour."""

from __future__ import annotations

import io


def patch(red: int, green: int, blue: int, side: int = 240) -> bytes:
    """Content of a PNG file that shows a square of one sRGB colour (channels from 0 to 255)."""
    from PIL import Image, PngImagePlugin  # Only commands that write samples need it.

    chunks = PngImagePlugin.PngInfo()
    chunks.add(b"sRGB", b"\0")  # so that no viewer guesses another colour space
    content = io.BytesIO()
    image = Image.new("RGB", (side, side), (red, green, blue))
    image.save(content, "PNG", pnginfo=chunks, optimize=True)
    return content.getvalue()
