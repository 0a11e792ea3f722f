"""The command `lore-active doctor`: examine everything, say it line by line, judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from server.cli import options
from server.cli.terminal import say
from server.doctor import clocks, disk, folder, machine, reach
from server.doctor.finding import Finding
from server.study.problems import printable

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def examine(study: Path | None, host: str, port: int) -> Iterator[Finding]:
    """Every examination, cheapest first; without a study, of the machine alone."""
    if study is not None:
        yield from folder.examine(study)
    yield from disk.examine(study or Path.cwd())
    yield from clocks.examine(study)
    yield from machine.examine()
    yield from reach.examine(study, host, port)


@click.command()
@click.argument("study", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@options.host("Address that serve will listen on.")
@options.port("Port that serve will listen on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(ctx: click.Context, study: Path | None, host: str, port: int, as_json: bool) -> None:
    """Check that this machine is fit for a study, and the study in DIR; exit code 1 if not.

    Looks at disk, clock, memory, versions and ports, and serves the study to itself for a moment,
    from a copy: the study's own data is not touched.
    """
    found: list[Finding] = []
    for one in examine(study, host, port):
        found.append(one)
        if as_json:
            say(f"{one.check} …")
        else:
            _print(one)
    problems = sum(one.level == "problem" for one in found)
    warnings = sum(one.level == "warning" for one in found)
    if as_json:
        report = {"ok": problems == 0, "problems": problems, "warnings": warnings}
        click.echo(json.dumps({**report, "findings": [asdict(one) for one in found]}))
    else:
        click.echo(f"\n{_verdict(problems, warnings)}")
    ctx.exit(1 if problems else 0)


def _print(one: Finding) -> None:
    level = click.style(f"{one.level:8s}", fg=COLOURS[one.level])
    click.echo(f"{level} {one.check:14s} {printable(one.found)}")
    if one.advice:
        click.echo(f"{'':8s} {'':14s} → {printable(one.advice)}")


def _verdict(problems: int, warnings: int) -> str:
    def count(number: int, word: str) -> str:
        return f"{number or 'no'} {word}{'' if number == 1 else 's'}"

    said = f"{count(problems, 'problem')}, {count(warnings, 'warning')}.".capitalize()
    return said + (" Do not start a study yet." if problems else " A study can run here.")
