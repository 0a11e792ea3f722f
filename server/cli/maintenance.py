"""The commands `forget` and `recover`: erase a participant, put a damaged study together again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from server.cli.terminal import confirm, say
from server.clock import now
from server.exports.tables import utc
from server.maintenance import erasure
from server.maintenance.erasure import Erased
from server.maintenance.recovery import NotNeeded, Recovered, put_in_place, recovered
from server.store.recovery.repair import Ranges
from server.study.loading import load
from server.study.lock import ProcessLock
from server.study.workspace import DATABASE, open_study

NAMES = {
    "participants": ("participant", "participants"),
    "queries": ("question", "questions"),
    "answers": ("answer", "answers"),
    "events": ("event", "events"),
    "prior_answers": ("imported answer", "imported answers"),
    "priors": ("imported file", "imported files"),
    "steps": ("step", "steps"),
    "models": ("model", "models"),
    "decisions": ("stopping decision", "stopping decisions"),
    "items": ("item", "items"),
    "state": ("state of the study", "states of the study"),
}
MAX_SHOWN = 20


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--dry-run", is_flag=True, help="Only say what could be recovered.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def recover(folder: Path, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Put the database of the study in DIR together again after it was damaged, lost or replaced.

    Takes the newest valid backup, rescue copies, and every row that can still be read from the
    damaged files, and says exactly what is missing. The files that it replaces are kept in
    backups/. Stop the server first.
    """
    if not (folder / "study.toml").is_file():
        raise InvalidParameter(f"{folder} holds no study.toml, so it is not the folder of a study.")
    study = load(folder, begun=True)
    hold = ProcessLock(study.folder)
    try:
        with recovered(study, now, say) as found:
            needed = isinstance(found, Recovered)
            report = found.report() if isinstance(found, Recovered) else asdict(found)
            if not as_json:
                for line in lines(found) if isinstance(found, Recovered) else _not_needed(found):
                    click.echo(line)
            kept = None
            if isinstance(found, Recovered) and not dry_run:
                if not yes:
                    confirm(f"Make this the {DATABASE} of {folder}?")
                kept = put_in_place(study.folder, found, now())
    finally:
        hold.release()
    if as_json:
        click.echo(json.dumps({"needed": needed, **report, "kept_in": kept and str(kept)}))
    elif kept is not None:
        click.echo(f"\nRecovered. What was there before is kept in {kept}.")


def _not_needed(found: NotNeeded) -> list[str]:
    told = [
        f"{DATABASE} is valid, and nothing in backups/ holds more: there is nothing to recover."
    ]
    if found.not_as_recorded:
        told.append(
            f"But some rows are not as the hash chain recorded them ({found.not_as_recorded:,}); "
            "`lore-active replay --verify` names them."
        )
    return told


def lines(found: Recovered) -> list[str]:
    """What was recovered and what is missing, as sentences."""
    told = ["Put together from:"]
    for one in found.used:
        state = f"damaged: {one.damage}" if one.damage else "valid"
        told.append(f"  {one.name} ({state}), up to answer {one.answers:,}")
    when = f", of {utc(found.newest_at)}" if found.newest_at is not None else ""
    people = _count(found.participants, "participants")
    told.append(
        f"Result: {_count(found.answers, 'answers')} of {people}. The newest is answer "
        f"{found.newest_answer:,}{when}."
    )
    told += _missing(found)
    for apart in found.apart:
        told.append(
            f"{apart.name} has other answers from number {apart.first:,} on: somebody went on with "
            f"an older copy. {_count(apart.answers, 'answers')} of that file are not in the result."
        )
    if found.mended.state_lost:
        told.append(
            "What was changed on the monitor (budget, trials, paused or stopped) is lost: "
            "study.toml holds again, and the study is paused."
        )
    if found.mended.steps_dropped:
        steps = _count(found.mended.steps_dropped, "steps")
        told.append(
            f"The worker's journal is complete up to step {found.mended.steps:,}; {steps} after "
            "that, with their models, are dropped. The worker makes a new model of all answers "
            "when the study is served."
        )
    if not found.chain_continues:
        told.append(
            "The hash chain could not be continued: it begins again with this recovery, so that "
            "earlier changes by other programs can no longer be detected."
        )
    return told


def _missing(found: Recovered) -> list[str]:
    missing = found.missing
    if missing.nothing:
        return [
            "Nothing is missing: every row that the hash chain knows of is there. Answers stored "
            "after the newest one would have left no trace in these files."
        ]
    told = [
        f"Missing: {named(table, numbers)}." for table, numbers in missing.rows.items() if numbers
    ]
    if missing.answers_of:
        people = ", ".join(f"P{number} ({many})" for number, many in missing.answers_of.items())
        told.append(f"Participants whose answers are missing (how many): {people}.")
    if missing.nameless:
        people = ", ".join(f"P{number}" for number in missing.nameless)
        told.append(f"Who they are is lost, only their answers are left: {people}.")
    if missing.older:
        rows = ", ".join(f"{_count(many, table)}" for table, many in missing.older.items())
        told.append(f"In an older state, because the last change is lost: {rows}.")
    if missing.unconfirmed:
        many = _count(missing.unconfirmed, "rows")
        told.append(f"Read from damaged pages, without anything to confirm them: {many}.")
    told += [f"More may be missing: {why}." for why in missing.unknown]
    return told


def _count(many: int, what: str) -> str:
    one, several = NAMES.get(what, (what.removesuffix("s"), what))
    return f"{many:,} {one if many == 1 else several}"


def named(table: str, found: Ranges) -> str:
    """`answers 4–7, 9 (5)`."""
    one, several = NAMES[table]
    shown = ", ".join(
        f"{first:,}" if first == last else f"{first:,}–{last:,}"
        for first, last in found[:MAX_SHOWN]
    )
    many = sum(last - first + 1 for first, last in found)
    more = f" and {len(found) - MAX_SHOWN} more ranges" if len(found) > MAX_SHOWN else ""
    return f"{one if many == 1 else several} {shown}{more} ({many:,})"


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("participant")
@click.option("--answers", is_flag=True, help="Erase what they answered, too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(folder: Path, participant: str, answers: bool, yes: bool, as_json: bool) -> None:
    """Erase who a participant of the study in DIR is.

    PARTICIPANT is their number in the monitor, or what the recruiting service calls them. Gone are
    their names, link parameters, browser, comment, timings, reasons given about them, and the time
    of day of all they did. Their answers stay, without a name, unless --answers erases them. There
    is no way back. Stop the server first.
    """
    if not (folder / DATABASE).is_file():
        raise InvalidParameter(f"{folder} holds no {DATABASE}, so there is nobody to erase.")
    study, database = open_study(folder, now)
    try:
        hold = ProcessLock(study.folder)
        try:
            who = erasure.find(database, participant)
            if not yes:
                confirm(_question(who.id, who.external, answers, study.name))
            done = erasure.forget(database, study, who, answers, now, say)
        finally:
            hold.release()
    finally:
        database.close()
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        _print_erased(done, folder)


def _question(number: int, external: str | None, answers: bool, study: str) -> str:
    called = f" ({external})" if external else ""
    what = "and everything they answered " if answers else ""
    return f"Erase participant {number}{called} {what}from {study}? There is no way back."


def _print_erased(done: Erased, folder: Path) -> None:
    fate = "are erased, too" if done.answers_erased else "stay, without a name"
    click.echo(f"Participant {done.participant} is erased. Their {done.answers} answers {fate}.")
    if done.backups_removed:
        count = len(done.backups_removed)
        copies = "1 file" if count == 1 else f"{count} files"
        then = f"; the new backup is {done.new_backup}" if done.new_backup else ""
        click.echo(f"Removed {copies} in backups/ that still held them{then}.")
    if done.still_in:
        click.echo("\nFiles made earlier still hold them. Delete these, or make them again:")
    for name in done.still_in:
        click.echo(f"  {folder / name}")
    if done.unsearched:
        click.echo("\nArchives that were not looked into:")
    for name in done.unsearched:
        click.echo(f"  {folder / name}")
    click.echo(
        "\nCopies elsewhere are yours to erase: backups and exports that you moved or sent, and "
        "what the recruiting service keeps."
    )
