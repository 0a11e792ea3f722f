"""What several reference pages need: tables in Markdown, and an application with a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from flask import Flask

from server.app import create_app
from server.clock import now
from server.study.samples.template import write_study

NOTE = "*This page is generated from the code by `make reference`.*"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def application(home: Path) -> Flask:
    write_study(home / "foods", "foods", 1)
    return create_app([home / "foods"], now)
