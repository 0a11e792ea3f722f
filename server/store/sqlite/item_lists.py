"""Lists of items as they are stored: options, choices and what makes two questions the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

Items = tuple[int, ...]

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Items).decode


def listed(items: Sequence[int]) -> str:
    """Return a list as JSON, in the form that SQLite's own functions give it."""
    return _encode(items).decode()


def items_in(stored: str | None) -> Items:
    """Return the items of a list; none if it cannot be read, as in a file that was edited."""
    try:
        return () if stored is None else _decode(stored)
    except (msgspec.DecodeError, UnicodeError):
        return ()


def is_list(stored: str) -> bool:
    """Return whether a text is a list of items."""
    return stored == "[]" or bool(items_in(stored))


def question_key(anchor: int | None, options: Sequence[int]) -> str:
    """Return the key of a question: the same whatever the order of its options."""
    return listed((anchor, *sorted(options)))  # type: ignore[arg-type]
