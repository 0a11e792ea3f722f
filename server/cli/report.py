"""The command `report`: a study as one self-contained HTML file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from server.cli.options import place_beside
from server.cli.terminal import say
from server.clock import now
from server.exports.log import opened
from server.report.report import report as make_report

START = "<!doctype html>"


@click.command(name="report")
@click.argument("path", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; report.html beside the data by default.",
)
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with small versions of the images, under the same names.",
)
@click.option(
    "--with-names",
    is_flag=True,
    help="Include recruitment ids, comments, and the names in the activity log.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="List simulated participants (bots) even if real participants have answered; they are not "
    "counted in any number.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    path: Path,
    out: Path | None,
    pictures: Path | None,
    with_names: bool,
    simulated: bool,
    as_json: bool,
) -> None:
    """Write a report as one HTML file: figures, data quality, methods, versions."""
    begun = time.perf_counter()
    with opened(path, now) as (study, database, _):
        out = out or place_beside(path, study.name, "report.html")
        _may_write(out)
        say("Reading the study …")
        made = make_report(database, study, now, pictures, with_names, simulated)
    written = _put(out, made.page)
    seconds = time.perf_counter() - begun
    contents, items = made.data, made.items
    if as_json:
        dimensions, accuracy = contents.shown["dimensions"], contents.shown["accuracy"]
        where = contents.shown["where"]
        result = {
            "file": str(out),
            "bytes": written,
            "seconds": round(seconds, 3),
            "answers": contents.summary.answers.answers,
            "counts": contents.summary.answers.plain(),
            "participants": contents.summary.participant_counts.arrived,
            "banner": " ".join(contents.shown["where"]["banner"]),
            "stage": where["stage"],
            "headline": where["headline"],
            "rank": dimensions["rank"],
            "settled": where["settled"],
            "accuracy": accuracy["value"] if accuracy["count"] else None,
            "pictures": items.pictures,
            "left_out": items.left_out,
        }
        click.echo(json.dumps(result))
        return
    click.echo(f"Wrote {out} ({written / 1e6:.1f} MB, {seconds:.1f} s)")
    if items.left_out:
        click.echo(items.left_out)
    if banner := contents.shown["where"]["banner"]:
        click.echo(". ".join([banner[0], " ".join(banner[1:])]))


def _may_write(out: Path) -> None:
    """Refuse to overwrite anything but a report: a mistyped name must not destroy data."""
    if out.is_dir():
        raise InvalidParameter(f"{out} is a folder, but the report is a single file.")
    if not out.exists():
        return
    with out.open("rb") as file:
        head = file.read(len(START))
    # The case differed in earlier versions.
    if head and head.lower() != START.encode():
        raise InvalidParameter(f"{out} already exists and is not a report; it was not overwritten.")


def _put(out: Path, page: str) -> int:
    """Replace the file atomically, since the old one may be open somewhere."""
    content = page.encode("utf-8", "replace")
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
    return len(content)
