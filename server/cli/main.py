"""The `lore-active` command: every subcommand, imported on demand, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import click
from threadpoolctl import threadpool_limits

from lore_active import __version__
from lore_active.errors import LoreError
from lore_active.registry import load_plugins


class Commands(MutableMapping[str, click.Command]):
    """Commands by name, each imported on first use.

    The numerical and drawing libraries take longer to import than most commands take to run.
    """

    def __init__(self) -> None:
        # A command, or its location as "module:name".
        self.homes: dict[str, click.Command | str] = {}

    def __getitem__(self, name: str) -> click.Command:
        command = self.homes[name]
        if isinstance(command, str):
            module, _, attribute = command.partition(":")
            loaded: click.Command = getattr(import_module(module), attribute)
            self.homes[name] = command = loaded
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self.homes[name] = command

    def __delitem__(self, name: str) -> None:
        del self.homes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


class OneSentence(click.Group):
    """Report the library's errors as one sentence on standard error, with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LoreError as error:
            click.echo(f"lore-active: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            click.echo(f"lore-active: {error.filename or ''}: {error.strerror}", err=True)
            ctx.exit(2)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Before the command is imported: what it offers may come from a plugin.
        load_plugins()
        resolved = super().resolve_command(ctx, args)
        # After the import: only libraries already loaded can be limited to one thread.
        ctx.with_resource(threadpool_limits(1))
        return resolved


COMMANDS = Commands()
COMMANDS.homes |= {
    "new": "server.cli.authoring:new",
    "check": "server.cli.authoring:check",
    "password": "server.cli.authoring:password",
    "doctor": "server.cli.doctor:doctor",
    "serve": "server.cli.serving:serve",
    "demo": "server.cli.serving:demo",
    "export": "server.cli.exchange:export",
    "import": "server.cli.exchange:import_",
    "replay": "server.cli.replay:replay",
    "reset": "server.cli.authoring:reset",
    "forget": "server.cli.maintenance:forget",
    "recover": "server.cli.maintenance:recover",
    "plan": "server.cli.planning:command",
    "simulate": "server.cli.simulation:command",
    "report": "server.cli.report:command",
    "fit": "server.cli.analysis:fit",
    "compare": "server.cli.analysis:compare",
}


@click.group(
    cls=OneSentence, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="lore-active")
def main() -> None:
    """Adaptive similarity experiments that estimate how many dimensions a percept has."""


if __name__ == "__main__":
    main()
