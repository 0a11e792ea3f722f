"""Single cells of a table: numbers, texts, and cells that hold nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)")


def is_number(cell: Any) -> bool:
    """Whether a cell is a number, or its text; not 1_000, nor digits of other scripts."""
    if isinstance(cell, (bytes, str)):
        return NUMBER.fullmatch(text_of(cell).strip().lower()) is not None
    return isinstance(cell, (int, float, np.integer, np.floating)) and not isinstance(cell, bool)


def text_of(cell: Any) -> str:
    """Convert a cell to text; undecodable bytes are escaped, so that they stay distinct."""
    return cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else str(cell)


def float_of(cell: Any) -> float:
    """Convert a numeric cell to a float; infinity if it is too large."""
    try:
        return float(cell)
    except OverflowError:
        return float("inf")


def is_missing(cell: Any) -> bool:
    """Whether a cell is missing: None, NaN, an empty text, or a library's missing value."""
    if isinstance(cell, (str, bytes)):
        return not cell.strip() or cell.strip().lower() in ("nan", b"nan")
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # pandas' NA refuses to be true or false
        return True
    except ValueError:  # more than one cell in a cell
        return False
