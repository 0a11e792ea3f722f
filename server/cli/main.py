"""The `lore-active` command: every subcommand, imported on demand, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from lore_active import __version__
from lore_active.errors import LoreError
from lore_active.registry import load_plugins


class Location(NamedTuple):
    """Where a command is defined ("module:name"), and its first sentence.

    The sentence is repeated here so that `lore-active --help` imports none of the commands.
    """

    place: str
    summary: str


class Commands(MutableMapping[str, click.Command]):
    """Commands by name, each imported on first use.

    The numerical and drawing libraries take longer to import than most commands take to run.
    """

    def __init__(self) -> None:
        self.homes: dict[str, click.Command | Location] = {}

    def __getitem__(self, name: str) -> click.Command:
        command = self.homes[name]
        if isinstance(command, Location):
            module, _, attribute = command.place.partition(":")
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

    def summary(self, name: str) -> str:
        """Return the first sentence of a command's help, without importing the command."""
        command = self.homes[name]
        return command.summary if isinstance(command, Location) else command.get_short_help_str()


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS.summary(name)) for name in sorted(COMMANDS)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # Before the command is imported: what it offers may come from a plugin.
        load_plugins()
        resolved = super().resolve_command(ctx, args)
        from threadpoolctl import threadpool_limits

        # After the import: only libraries already loaded can be limited to one thread.
        ctx.with_resource(threadpool_limits(1))
        return resolved


COMMANDS = Commands()
COMMANDS.homes |= {
    "new": Location(
        "server.cli.authoring:new",
        "Create a study in DIR, with commented settings and sample stimuli, ready to run.",
    ),
    "check": Location(
        "server.cli.authoring:check",
        "Validate the studies in DIR...: report every problem; exit with code 2 if there is any.",
    ),
    "password": Location(
        "server.cli.authoring:password",
        "Set a new experimenter password for the study in DIR and show it once.",
    ),
    "doctor": Location(
        "server.cli.maintenance:doctor",
        "Check that this machine, and the study in DIR, are ready; exit with code 1 if not.",
    ),
    "serve": Location(
        "server.cli.serving:serve",
        "Serve studies to participants and update their models while answers come in.",
    ),
    "demo": Location(
        "server.cli.serving:demo",
        "Run a demo study of colours with simulated participants; you can take part, too.",
    ),
    "export": Location(
        "server.cli.exchange:export",
        "Write a study's data as files, in one format or in all of them.",
    ),
    "import": Location(
        "server.cli.exchange:import_",
        "Import answers into the study in DIR, or a study's log into a new folder.",
    ),
    "replay": Location(
        "server.cli.replay:replay",
        "Recompute a study from its journal and compare every row, model, question and decision.",
    ),
    "reset": Location(
        "server.cli.authoring:reset",
        "Clear the data of the study in DIR so that it can start over; settings and stimuli stay.",
    ),
    "forget": Location(
        "server.cli.maintenance:forget",
        "Erase the identity of a participant of the study in DIR.",
    ),
    "recover": Location(
        "server.cli.maintenance:recover",
        "Recover the database of the study in DIR after it was damaged, lost or replaced.",
    ),
    "plan": Location(
        "server.cli.planning:command",
        "Estimate by simulation what a study needs: answers, participants, hours and money.",
    ),
    "simulate": Location(
        "server.cli.simulation:command",
        "Run studies with simulated participants, or on logged answers.",
    ),
    "report": Location(
        "server.cli.report:command",
        "Write a report as one HTML file: figures, data quality, methods, versions.",
    ),
    "fit": Location(
        "server.cli.analysis:fit",
        "Fit the answers in FILE (CSV, .npy or .npz; rows anchor, nearer, farther, or whole "
        "trials).",
    ),
    "compare": Location(
        "server.cli.analysis:compare",
        "Compare LORE with other methods: held-out accuracy, rank and run time.",
    ),
}


@click.group(
    cls=OneSentence, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="lore-active")
def main() -> None:
    """Adaptive similarity experiments that estimate how many dimensions a percept has."""


if __name__ == "__main__":
    main()
