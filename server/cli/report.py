"""The command `report`: a whole study as one HTML file."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import click

from lore_active.errors import InvalidParameter
from server.cli.options import opened, place_beside
from server.clock import now
from server.report.report import report as make_report

START = "<!doctype html>"


@click.command(name="report")
@click.argument("path", metavar="DIR|LOG", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; report.html beside the data if not given.",
)
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of small versions of the pictures, under the same names.",
)
@click.option(
    "--with-names",
    is_flag=True,
    help="Tell who participants are to the recruiting service, what they wrote, and who decided.",
)
@click.option(
    "--simulated",
    is_flag=True,
    help="List simulated participants (bots) although people have answered; no number has them.",
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
    """Write a study as one HTML file: pictures, data quality, methods, versions."""
    begun = time.perf_counter()
    with opened(path) as (study, database, _):
        out = out or place_beside(path, study.name, "report.html")
        _may_write(out)
        _tell("reading …")
        made = make_report(database, study, now, pictures, with_names, simulated)
    written = _put(out, made.page)
    seconds = time.perf_counter() - begun
    found, items = made.found, made.items
    if as_json:
        dimensions, accuracy = found.shown["dimensions"], found.shown["accuracy"]
        where = found.shown["where"]
        told = {
            "file": str(out),
            "bytes": written,
            "seconds": round(seconds, 3),
            "answers": found.facts.answers.answers,
            "counts": found.facts.answers.plain(),
            "participants": found.facts.participants.arrived,
            "banner": " ".join(found.shown["where"]["banner"]),
            "stage": where["stage"],
            "headline": where["headline"],
            "rank": dimensions["rank"],
            "settled": where["settled"],
            "accuracy": accuracy["value"] if accuracy["count"] else None,
            "pictures": items.pictures,
            "left_out": items.left_out,
        }
        click.echo(json.dumps(told))
        return
    click.echo(f"written: {out} ({written / 1e6:.1f} MB, {seconds:.1f} s)")
    if items.left_out:
        click.echo(items.left_out)
    if said := found.shown["where"]["banner"]:
        click.echo(". ".join([said[0], " ".join(said[1:])]))


def _tell(words: str) -> None:
    """For a person who watches."""
    if sys.stderr.isatty():
        print(words, file=sys.stderr)


def _may_write(out: Path) -> None:
    """Only a report is written over: a mistyped name must not cost anybody their data."""
    if out.is_dir():
        raise InvalidParameter(f"{out} is a folder, but the report is one file.")
    if not out.exists():
        return
    with out.open("rb") as file:
        head = file.read(len(START))
    # Reports of earlier versions begin with it in lower case.
    if head and head.lower() != START.encode():
        raise InvalidParameter(f"{out} exists and is no report; it is not written over.")


def _put(out: Path, page: str) -> int:
    """Whole or not at all: somebody may have the old one open."""
    content = page.encode("utf-8", "replace")
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content)
        fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
    return len(content)
