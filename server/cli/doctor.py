"""The command `lore-active doctor`: run every check and print the results and a conclusion."""

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
    """Run every check, cheapest first; without a study, only those of the machine."""
    if study is not None:
        yield from folder.examine(study)
    yield from disk.examine(study or Path.cwd())
    yield from clocks.examine(study)
    yield from machine.examine()
    yield from reach.examine(study, host, port)


@click.command()
@click.argument("study", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@options.host("Address that `serve` will listen on.")
@options.port("Port that `serve` will listen on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def doctor(ctx: click.Context, study: Path | None, host: str, port: int, as_json: bool) -> None:
    """Check that this machine, and the study in DIR, are ready; exit with code 1 if not.

    Checks disk, clock, memory, versions and ports, and briefly serves a copy of the study to
    itself. The study's own data are not touched.
    """
    findings: list[Finding] = []
    for finding in examine(study, host, port):
        findings.append(finding)
        if as_json:
            say(f"{finding.check} …")
        else:
            _print(finding)
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if as_json:
        report = {"ok": problems == 0, "problems": problems, "warnings": warnings}
        click.echo(json.dumps({**report, "findings": [asdict(finding) for finding in findings]}))
    else:
        click.echo(f"\n{_verdict(problems, warnings)}")
    ctx.exit(1 if problems else 0)


def _print(finding: Finding) -> None:
    level = click.style(f"{finding.level:8s}", fg=COLOURS[finding.level])
    click.echo(f"{level} {finding.check:14s} {printable(finding.found)}")
    if finding.advice:
        click.echo(f"{'':8s} {'':14s} → {printable(finding.advice)}")


def _verdict(problems: int, warnings: int) -> str:
    def count(number: int, word: str) -> str:
        return f"{number or 'no'} {word}{'' if number == 1 else 's'}"

    counts = f"{count(problems, 'problem')}, {count(warnings, 'warning')}.".capitalize()
    return counts + (
        " Fix the problems before you start a study." if problems else " Ready to run a study."
    )
