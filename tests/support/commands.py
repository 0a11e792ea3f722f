"""Commands of `lore-active`, run in this process."""

from __future__ import annotations

from subprocess import CompletedProcess
from typing import Any

from click.testing import CliRunner

from server.cli.main import main


def completed(*arguments: object, **options: Any) -> CompletedProcess[str]:
    """A command's exit code and what it prints, without starting Python and its libraries again.

    An error that it does not report itself, which would be a traceback, is raised.
    """
    given = [str(argument) for argument in arguments]
    done = CliRunner().invoke(main, given, **options)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return CompletedProcess(given, done.exit_code, done.stdout, done.stderr)


def run(*arguments: object, code: int = 0, **options: Any) -> str:
    """What a command prints; it must end with this exit code."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done.output
