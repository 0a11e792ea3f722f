"""Commands of `lore-active`, run in this process."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from server.cli.main import main


def run(*arguments: object, code: int = 0, **options: Any) -> str:
    """What a command prints; it must end with this exit code."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done.output
