"""Tables and notes that a benchmark prints and keeps under docs/benchmarks."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"


class Page:
    """A Markdown page that is printed while it grows and written at the end."""

    def __init__(self, name: str, title: str, command: str) -> None:
        self._file = FOLDER / f"{name}.md"
        self._lines: list[str] = []
        self.text(f"# {title}\n\nWritten by `{command}`. {machine()}")

    def text(self, text: str) -> None:
        self._lines += [text, ""]
        print(text + "\n", flush=True)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
        self.text("\n".join(lines))

    def keep_others(self) -> None:
        """Take over the sections (## …) of the page as it is that were not written again."""
        if not self._file.exists():
            return
        new = set(_sections("\n".join(self._lines)))
        for heading, text in _sections(self._file.read_text(encoding="utf-8")).items():
            if heading not in new:
                self.text(text)

    def write(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._file.write_text("\n".join(self._lines).rstrip() + "\n", encoding="utf-8")
        print(f"written: {self._file.relative_to(FOLDER.parent.parent)}")


def _sections(text: str) -> dict[str, str]:
    """Each section of a page by its heading."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.rstrip() for part in parts}


def machine() -> str:
    """What the figures were measured with."""
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}, "
        f"{platform.machine()}; measured on a shared machine, so compare ratios rather than "
        "absolute times."
    )
