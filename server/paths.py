"""Location of templates and static files: beside the package, or inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def place(name: str) -> Path:
    """Return the folder of that name."""
    inside = _HERE / name
    return inside if inside.is_dir() else _HERE.parent / name
