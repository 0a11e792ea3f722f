"""The commands `doctor`, `recover` and `forget`: examine, repair a damaged study, erase."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from lore_active.wording import many
from server.cli import options
from server.cli.terminal import confirm, say
from server.clock import now
from server.doctor import clocks, disk, machine, reach
from server.doctor import folder as study_folder
from server.doctor.finding import Finding
from server.exports.tables import utc
from server.maintenance import erasure
from server.maintenance.erasure import Erased
from server.maintenance.recovery import NotNeeded, Recovered, put_in_place, recovered
from server.store.recovery.repair import Ranges
from server.study.loading import load
from server.study.lock import ProcessLock
from server.study.problems import printable
from server.study.workspace import DATABASE, open_study

NAMES = {
    "participants": ("participant", "participants"),
    "queries": ("question", "questions"),
    "answers": ("answer", "answers"),
    "events": ("event", "events"),
    "imported_answers": ("imported answer", "imported answers"),
    "imported_files": ("imported file", "imported files"),
    "steps": ("step", "steps"),
    "models": ("model", "models"),
    "decisions": ("stopping decision", "stopping decisions"),
    "items": ("item", "items"),
    "state": ("state of the study", "states of the study"),
}
MAX_SHOWN = 20
COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--dry-run", is_flag=True, help="Only show what could be recovered.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def recover(folder: Path, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Recover the database of the study in DIR after it was damaged, lost or replaced.

    Combines the newest valid backup, rescue copies, and every row that can still be read from the
    damaged files, and reports exactly what is missing. The files that it replaces are kept in
    backups/. Stop the server first.
    """
    if not (folder / "study.toml").is_file():
        raise InvalidParameter(f"{folder} contains no study.toml, so it is not a study folder.")
    study = load(folder, begun=True)
    lock = ProcessLock(study.folder)
    try:
        with recovered(study, now, say) as outcome:
            needed = isinstance(outcome, Recovered)
            report = outcome.report() if isinstance(outcome, Recovered) else asdict(outcome)
            if not as_json:
                for line in (
                    lines(outcome) if isinstance(outcome, Recovered) else _not_needed(outcome)
                ):
                    click.echo(line)
            kept = None
            if isinstance(outcome, Recovered) and not dry_run:
                if not yes:
                    confirm(f"Make this the {DATABASE} of {folder}?")
                kept = put_in_place(study.folder, outcome, now())
    finally:
        lock.release()
    if as_json:
        click.echo(json.dumps({"needed": needed, **report, "kept_in": kept and str(kept)}))
    elif kept is not None:
        click.echo(f"\nRecovered. The previous files are kept in {kept}.")


def _not_needed(outcome: NotNeeded) -> list[str]:
    sentences = [
        f"{DATABASE} is valid, and no backup holds more data: there is nothing to recover."
    ]
    if outcome.not_as_recorded:
        sentences.append(
            f"However, some rows differ from the hash chain ({outcome.not_as_recorded:,}); "
            "`lore-active replay --verify` lists them."
        )
    return sentences


def lines(outcome: Recovered) -> list[str]:
    """Describe what was recovered and what is missing, line by line."""
    sentences = ["Sources:"]
    for source in outcome.used:
        state = f"damaged: {source.damage}" if source.damage else "valid"
        sentences.append(f"  {source.name} ({state}), up to answer {source.answers:,}")
    when = f", of {utc(outcome.newest_at)}" if outcome.newest_at is not None else ""
    participants = _count(outcome.participants, "participants")
    sentences.append(
        f"Result: {_count(outcome.answers, 'answers')} from {participants}. The newest is answer "
        f"{outcome.newest_answer:,}{when}."
    )
    sentences += _missing(outcome)
    for apart in outcome.apart:
        sentences.append(
            f"{apart.name} has different answers from number {apart.first:,} on: "
            "collection was continued from an older copy. "
            f"{_count(apart.answers, 'answers')} in that file are not in the result."
        )
    if outcome.mended.state_lost:
        sentences.append(
            "Changes made on the monitor (budget, trials, paused or stopped) are lost: the "
            "settings of study.toml apply again, and the study is paused."
        )
    if outcome.mended.steps_dropped:
        steps = _count(outcome.mended.steps_dropped, "steps")
        sentences.append(
            f"The worker's journal is complete up to step {outcome.mended.steps:,}; {steps} after "
            "that, with their models, are dropped. The worker fits a new model to all answers "
            "when the study is served."
        )
    if not outcome.chain_continues:
        sentences.append(
            "The hash chain could not be continued: it starts over with this recovery, so "
            "earlier changes by other programs can no longer be detected."
        )
    return sentences


def _missing(outcome: Recovered) -> list[str]:
    missing = outcome.missing
    if missing.nothing:
        return [
            "Nothing is missing: every row in the hash chain is there. Answers stored after the "
            "newest one would have left no trace in these files."
        ]
    sentences = [
        f"Missing: {named(table, numbers)}." for table, numbers in missing.rows.items() if numbers
    ]
    if missing.answers_of:
        names = (f"P{number} ({many})" for number, many in missing.answers_of.items())
        sentences.append(f"Participants with missing answers (how many): {', '.join(names)}.")
    if missing.identity_lost:
        identity_lost = ", ".join(f"P{number}" for number in missing.identity_lost)
        sentences.append(
            f"Participants whose identity is lost and of whom only answers remain: {identity_lost}."
        )
    if missing.older:
        rows = ", ".join(f"{_count(many, table)}" for table, many in missing.older.items())
        sentences.append(f"Restored in an older state, because the last change is lost: {rows}.")
    if missing.unconfirmed:
        many = _count(missing.unconfirmed, "rows")
        sentences.append(f"Read from damaged pages and not confirmed by the hash chain: {many}.")
    sentences += [f"More may be missing: {why}." for why in missing.unknown]
    return sentences


def _count(number: int, what: str) -> str:
    singular, plural = NAMES.get(what, (what.removesuffix("s"), what))
    return f"{number:,} {singular if number == 1 else plural}"


def named(table: str, ranges: Ranges) -> str:
    """Format row ranges, as in `answers 4–7, 9 (5)`."""
    singular, plural = NAMES[table]
    shown = ", ".join(
        f"{first:,}" if first == last else f"{first:,}–{last:,}"
        for first, last in ranges[:MAX_SHOWN]
    )
    count = sum(last - first + 1 for first, last in ranges)
    rest = f" and {len(ranges) - MAX_SHOWN} more ranges" if len(ranges) > MAX_SHOWN else ""
    return f"{singular if count == 1 else plural} {shown}{rest} ({count:,})"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("participant")
@click.option("--answers", is_flag=True, help="Also erase their answers.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(folder: Path, participant: str, answers: bool, yes: bool, as_json: bool) -> None:
    """Erase the identity of a participant of the study in DIR.

    PARTICIPANT is their number in the monitor, or their id at the recruitment site. Erased are
    their ids, link parameters, browser, comment, timings, reasons given for excluding them, and
    the time of day of everything they did. Their answers stay, pseudonymised, unless --answers
    erases them. This cannot be undone. Stop the server first.
    """
    if not (folder / DATABASE).is_file():
        raise InvalidParameter(
            f"{folder} contains no {DATABASE}, so there are no participants to erase."
        )
    study, database = open_study(folder, now)
    try:
        lock = ProcessLock(study.folder)
        try:
            who = erasure.find(database, participant)
            if not yes:
                confirm(_question(who.id, who.external, answers, study.name))
            done = erasure.forget(database, study, who, answers, now, say)
        finally:
            lock.release()
    finally:
        database.close()
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        _print_erased(done, folder)


def _question(number: int, external: str | None, answers: bool, study: str) -> str:
    called = f" ({external})" if external else ""
    what = "and all of their answers " if answers else ""
    return f"Erase participant {number}{called} {what}from {study}? This cannot be undone."


def _print_erased(done: Erased, folder: Path) -> None:
    if done.answers_erased:
        fate = many(done.answers, "answer was erased", "answers were erased") + " as well"
    else:
        fate = many(done.answers, "answer stays", "answers stay") + ", pseudonymised"
    click.echo(f"Erased participant {done.participant}. Their {fate}.")
    if done.backups_removed:
        copies = many(len(done.backups_removed), "file")
        then = f"; the new backup is {done.new_backup}" if done.new_backup else ""
        click.echo(f"Removed {copies} in backups/ that still held their data{then}.")
    if done.still_in:
        click.echo(
            "\nThese files, made earlier, still contain their data. Delete them or make them again:"
        )
    for name in done.still_in:
        click.echo(f"  {folder / name}")
    if done.unsearched:
        click.echo("\nArchives that were not searched:")
    for name in done.unsearched:
        click.echo(f"  {folder / name}")
    click.echo(
        "\nErase any other copies yourself: backups and exports that you moved or sent, and what "
        "the recruitment site keeps."
    )


def examine(study: Path | None, host: str, port: int) -> Iterator[Finding]:
    """Run every check, cheapest first; without a study, only those of the machine."""
    if study is not None:
        yield from study_folder.examine(study)
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
            _print_finding(finding)
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if as_json:
        report = {"ok": problems == 0, "problems": problems, "warnings": warnings}
        click.echo(json.dumps({**report, "findings": [asdict(finding) for finding in findings]}))
    else:
        click.echo(f"\n{_verdict(problems, warnings)}")
    ctx.exit(1 if problems else 0)


def _print_finding(finding: Finding) -> None:
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
