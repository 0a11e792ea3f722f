"""Labels that differ but look the same: Unicode forms, invisible characters, kinds of space."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

# Invisible characters beside format characters (category Cf): joiners, fillers and variation
# selectors.
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
        *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
    )
    for code in range(first, last + 1)
)
# Visible characters of the category Cf: number signs, and the tag letters that distinguish the
# flags of regions.
_VISIBLE = frozenset(
    chr(code)
    for first, last in (
        *((0x0600, 0x0605), (0x06DD, 0x06DD), (0x070F, 0x070F), (0x0890, 0x0891)),
        *((0x08E2, 0x08E2), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0xE0020, 0xE007F)),
    )
    for code in range(first, last + 1)
)
# Maximum number of characters that an error message names.
MAX_NAMED = 4


def unified(label: str) -> str:
    """Normalise a label for comparison: Unicode NFC, no surrounding space."""
    return unicodedata.normalize("NFC", label).strip()


def appearance(label: str) -> str:
    """The visible form of a label: without invisible characters, with one kind of space."""
    seen = "".join(
        " " if character.isspace() else character
        for character in unicodedata.normalize("NFC", label)
        if character.isspace() or not _is_invisible(character)
    )
    # An invisible character may have separated an accent from its letter.
    return unicodedata.normalize("NFC", " ".join(seen.split()))


def look_alike(labels: Iterable[str]) -> tuple[str, str] | None:
    """The first two labels that differ, but look the same."""
    seen: dict[str, str] = {}
    for label in labels:
        first = seen.setdefault(appearance(label), label)
        if first != label:
            return first, label
    return None


def peculiar(label: str, other: str) -> str:
    """Unicode names, in brackets, of the characters that only `label` has; empty if none."""
    parts = SequenceMatcher(None, other, label, autojunk=False).get_opcodes()
    names = [
        unicodedata.name(character, f"U+{ord(character):04X}")
        for tag, _, _, first, last in parts
        if tag != "equal"
        for character in label[first:last]
    ]
    if not names:
        return ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f" (with {', '.join(names[:MAX_NAMED])}{more})"


def _is_invisible(character: str) -> bool:
    if character in _INVISIBLE:
        return True
    return unicodedata.category(character) in ("Cf", "Cc") and character not in _VISIBLE
