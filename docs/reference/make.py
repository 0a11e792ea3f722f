"""Generate the reference pages from the code: commands, columns, URLs, modules, stages.

Run from the project's folder: python -m docs.reference.make. A test checks that they are current.
"""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from flask import Flask

from docs.reference.meanings import (
    ARRAYS,
    EMBEDDING,
    EVENTS,
    FIT,
    IMPORTED_ARRAYS,
    KINDS,
    LOG,
    ROWS,
)
from lore_active.questions.kinds import TRIPLET, Kind
from lore_active.stopping.criteria import CRITERIA
from lore_active.stopping.stages import STAGES, Stage
from server.app import create_app
from server.cli.main import main as lore_active
from server.clock import now
from server.exports import psych_ds
from server.exports.answers import ANSWERS, COMPARISONS, answer_columns
from server.exports.dictionary import MEANINGS, meaning
from server.exports.downloads import DOWNLOADS
from server.exports.imported import MEANINGS as IMPORTED
from server.exports.imported import columns as imported_columns
from server.exports.other_programs import (
    SALMON,
    TRIPLETTOOLS,
    TRIPLETTOOLS_EMBEDDING,
    TRIPLETTOOLS_ITEMS,
)
from server.exports.tables import ITEMS, MODELS, PARTICIPANTS, ExportOptions
from server.store import archive
from server.store.tables import SECRET
from server.study.samples.template import write_study

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NOTE = "*This page is generated from the code by `make reference`.*"
ORDER = (
    *("new", "check", "password", "doctor", "plan", "serve", "demo", "export", "report"),
    *("replay", "import", "reset", "forget", "recover", "compare", "fit", "simulate"),
)
ROLES = {"anybody": "anyone", "experimenter": "experimenter", "reader": "view-only link"}


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "commands.md": "\n".join(commands()),
        "columns.md": "\n".join(columns()),
        "endpoints.md": "\n".join(endpoints()),
        "modules.md": "\n".join(modules()),
        "stages.md": "\n".join(stages()),
    }


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


# ---- stages -------------------------------------------------------------------------------------


def stages() -> Iterator[str]:
    """The stages of a study with their messages, and the criteria."""
    yield from ["# Stages of a study", "", NOTE, ""]
    yield from [
        "The monitor, the report and its methods text, `replay`, `simulate` and `Learner.verdict`",
        "describe a study in the same words, which come from this table. A study is in the first",
        "stage whose condition applies. Figures replace the braces. `{Dimensions}` is the number",
        "of dimensions reported: *two dimensions*; *two or three dimensions* if it changes between",
        "audits (*up to three*, if some reported none); *at least one dimension* if held-out",
        "answers do not determine how many.",
        "",
    ]
    rows = (
        (f"**{one.name}**", one.when, one.headline, one.explanation, _shown(one)) for one in STAGES
    )
    heads = ("stage", "recognised by", "headline", "explanation", "criteria shown")
    yield from _table(heads, rows)
    yield from [
        "While collection is paused, has not started or has ended, the explanation says so; also",
        "if all answers are imported, or some are simulated. Once a number of dimensions is",
        "reported, the prequential accuracy is shown with the headline, with its 95 % confidence",
        "interval and the chance level: the share of the last 200 random questions that the map at",
        "the time predicted correctly before they were answered. Before that there is no map, and",
        "so no accuracy.",
        "",
        "“Possibly some structure” is a hint, not a finding: predictions are compared with chance",
        "at every audit, and answers that are mere guesses meet that criterion now and then. For a",
        "number of dimensions to be reported, [thresholds are much stricter](../learner.md).",
        "",
        "## Criteria",
        "",
    ]
    about = ((f"`{name}`", text.title, text.waiting) for name, text in CRITERIA.items())
    yield from _table(("name", "title", "while it is not met"), about)


def _shown(stage: Stage) -> str:
    if stage.has_rank:
        return "all"
    return ", ".join(f"`{name}`" for name in stage.criteria) or "none"


# ---- commands -----------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Each command with its arguments and options, in the order in which a study needs them."""
    yield from ["# Commands", "", NOTE, ""]
    yield from [
        "Every command takes `-h` or `--help`. Those that compute take `--json`: one JSON object,",
        "or one per line, on standard output and nothing else. Bad input ends with exit code 2",
        "and one sentence on standard error. `lore-active --version` prints the version.",
        "",
    ]
    known = lore_active.commands
    names = [name for name in ORDER if name in known]
    for name in names + sorted(set(known) - set(names)):
        yield from _command(name, known[name])


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"lore-active {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from [f"## {name}", "", "```", f"lore-active {name} {usage}", "```", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield from [" ".join(paragraph.split()), ""]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if options:
        rows = [(_names(one, context), _default(one, context), _meaning(one)) for one in options]
        yield from _table(("option", "default", "meaning"), rows)


def _names(option: click.Option, context: click.Context) -> str:
    """The option as it is typed; its possible values are listed with the meaning."""
    if option.is_flag:
        kind = ""
    elif isinstance(option.type, click.Choice):
        kind = " WORD"
    else:
        kind = " " + option.make_metavar(context).removesuffix(" RANGE")
    return f"`{', '.join(option.opts)}{kind}`"


def _meaning(option: click.Option) -> str:
    said = [option.help or ""]
    kind = option.type
    if isinstance(kind, click.Choice):
        said.append(f"One of {', '.join(kind.choices)}.")
    if isinstance(kind, click.IntRange | click.FloatRange):
        if kind.max is not None:
            said.append(f"From {kind.min} to {kind.max}.")
        elif kind.min is not None:
            said.append(f"{kind.min:g} or more.")
    return " ".join(said)


def _default(option: click.Option, context: click.Context) -> str:
    value = option.get_default(context)
    if option.is_flag or value in (None, "", ()) or "UNSET" in repr(value).upper():
        return ""
    return f"`{value}`"


# ---- columns ------------------------------------------------------------------------------------


def columns() -> Iterator[str]:
    """Every exported file, with every column."""
    yield from ["# Columns of every export", "", NOTE, ""]
    yield from [
        "`lore-active export DIR --format FORMAT` writes the files below; most folders also have",
        "their own data dictionary. Texts are UTF-8, times UTC. Texts that a spreadsheet would run",
        "as a formula begin with an apostrophe. Some files can be downloaded from the monitor:",
        "",
    ]
    yield from _table(
        ("on the monitor", "holds"),
        ((f"`{one.name}`", one.description) for one in DOWNLOADS.values()),
    )
    yield from ["## csv", ""]
    items = tuple(ITEMS)
    for file, names in (
        ("answers.csv", ANSWERS),
        ("participants.csv", PARTICIPANTS),
        ("items.csv", items),
        ("models.csv", MODELS),
    ):
        yield from _file(file, ((name, MEANINGS[name]) for name in names))
    yield from _of_kinds()
    yield from _file("imported.csv (if answers were imported)", _imported("csv"))
    yield from _file("embedding.csv", EMBEDDING.items())
    yield from _file("events.jsonl", EVENTS.items())
    yield from ["Kinds of events:", ""]
    yield from _table(
        ("kind", "meaning"), ((f"`{kind}`", meaning) for kind, meaning in KINDS.items())
    )
    yield from ["## triplettools", ""]
    for file, names in (
        ("STUDY_triplettools.csv", TRIPLETTOOLS),
        ("STUDY_triplettools_items.csv", TRIPLETTOOLS_ITEMS),
        ("STUDY_triplettools_embedding.csv", TRIPLETTOOLS_EMBEDDING),
    ):
        yield from _file(file, ((name, MEANINGS[name]) for name in names))
    yield from _file("STUDY_imported.csv (if answers were imported)", _imported("triplettools"))
    yield from ["## salmon", ""]
    yield from _file("STUDY_responses.csv", ((name, MEANINGS[name]) for name in SALMON))
    yield from [
        "`STUDY_targets.csv`: keys of the items, one per line, target 0 first.",
        "`STUDY_embedding.csv`: coordinates of the newest model, one row per target and one column",
        "per dimension.",
        "",
    ]
    yield from _file("STUDY_imported.csv (if answers were imported)", _imported("salmon"))
    yield from ["## cblearn", ""]
    yield from _file("STUDY_triplets.npz", ARRAYS.items())
    yield from _file(
        "STUDY_imported_triplets.npz (if answers were imported)", IMPORTED_ARRAYS.items()
    )
    yield from [
        "## psych-ds",
        "",
        "`dataset_description.json` describes every column. De-identified unless exported with",
        "`--identified`: then answers and participants have the columns of `answers.csv` and",
        "`participants.csv` above.",
        "",
    ]
    safe = ExportOptions(comments=True)
    for task, names in {
        "answers": psych_ds.shown_columns(TRIPLET, safe),
        "participants": psych_ds.participant_columns(safe),
        "items": ITEMS,
    }.items():
        kept = {name: MEANINGS[name] for name in names}
        if "feedback" in kept:
            kept["feedback"] += " (only with `--comments`)"
        yield from _file(f"data/study-STUDY_task-{task}_data.csv", kept.items())
    yield from [
        "`data/study-STUDY_task-embedding_data.csv` has the columns of `embedding.csv`,",
        "`data/study-STUDY_task-imported_data.csv` those of `imported.csv`, if there is one.",
        "",
        "## log",
        "",
    ]
    yield from _file("STUDY.log.jsonl", LOG.items())
    yield from ["`row` of a line whose `kind` is …", ""]
    for table, names in _stored().items():
        yield from [f"**{table}**", ""]
        fields = sorted(set(names) - {SECRET.get(table)})
        yield from _table(("field", "meaning"), ((f"`{n}`", ROWS[table][n]) for n in fields))
    yield from ["## What `lore-active fit --out` writes", ""]
    yield from _file("embedding.csv", EMBEDDING.items())
    yield from _file("fit.json", FIT.items())


def _imported(name: str) -> Iterator[tuple[str, str]]:
    return ((column, IMPORTED[column]) for column in imported_columns(name))


def _of_kinds() -> Iterator[str]:
    """The files of answers to questions of other kinds than triplets."""
    own = [name for name in answer_columns(Kind("rank", 8, 2)) if name not in ANSWERS]
    shown = [name for name in own if "_" not in name or name.endswith("_1")]
    yield from [
        "### answers.csv (except in studies of triplets)",
        "",
        "These columns instead of `left`, `right`, `side` and `chosen` (an `option_…` for each",
        "option, a `chosen_…` for each pick):",
        "",
    ]
    yield from _table(("column", "meaning"), ((f"`{name}`", meaning(name)) for name in shown))
    yield from _file(
        "comparisons.csv (except in studies of triplets)",
        ((name, meaning(name)) for name in COMPARISONS),
    )
    yield from [
        "Files for other programs then have a row for each comparison, and a last column `trial`",
        "(in `.npz` an array): the number of the answer.",
        "",
    ]


def _file(name: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from [f"### {name}", ""]
    yield from _table(("column", "meaning"), ((f"`{column}`", meaning) for column, meaning in rows))


def _stored() -> dict[str, dict[str, str]]:
    with tempfile.TemporaryDirectory() as home:
        app = _application(Path(home))
        (served,) = app.extensions["studies"].values()
        stored: dict[str, dict[str, str]] = served.database.read(
            lambda c: {table: archive.columns(c, table) for table in archive.LOGGED}
        )
        served.database.close()
    return stored


# ---- URLs ---------------------------------------------------------------------------------------


def endpoints() -> Iterator[str]:
    """Every URL that the server answers, from its own map."""
    yield from ["# URLs", "", NOTE, ""]
    yield from [
        "`<study>` is the name of the study's folder. Any other URL gets 404. The fields of the",
        "monitor's data are in [the monitor's JSON data](../monitor-api.md).",
        "",
    ]
    with tempfile.TemporaryDirectory() as home:
        app = _application(Path(home))
        rules = sorted(app.url_map.iter_rules(), key=lambda rule: (rule.rule, str(rule.methods)))
        rows = [_rule(app, rule) for rule in rules]
        for served in app.extensions["studies"].values():
            served.database.close()
    for title, belongs in (
        ("For participants", lambda path: path.startswith("/s/")),
        ("For experimenters and view-only links", lambda path: path.startswith("/monitor")),
        ("For everyone", lambda path: not path.startswith(("/s/", "/monitor"))),
    ):
        yield from [f"## {title}", ""]
        chosen = [row[1:] for row in rows if belongs(row[0])]
        yield from _table(("URL", "method", "who", "what"), chosen)


def _rule(app: Flask, rule: Any) -> tuple[str, str, str, str, str]:
    view = app.view_functions[rule.endpoint]
    methods = ", ".join(sorted(rule.methods - {"HEAD", "OPTIONS"}))
    who = ", ".join(ROLES[one] for one in getattr(view, "open_to", ("anybody",)))
    if rule.endpoint == "static":
        purpose = "Scripts, styles and icons."
    else:
        purpose = (view.__doc__ or "").strip().splitlines()[0]
    path = re.sub(r"<(?:[^:<>]+:)?(\w+)>", r"<\1>", rule.rule)
    return rule.rule, f"`{path}`", methods, who, purpose


# ---- modules ------------------------------------------------------------------------------------


def modules() -> Iterator[str]:
    """Every module with its purpose, folder by folder."""
    yield from ["# Modules", "", NOTE, ""]
    yield from ["The purpose of each module, from the first line of its docstring.", ""]
    for package in ("lore_active", "server"):
        files = sorted((ROOT / package).rglob("*.py"))
        for folder in dict.fromkeys(file.parent for file in files):
            yield from [f"## {folder.relative_to(ROOT).as_posix()}", ""]
            inside = [file for file in files if file.parent == folder and file.stem[0] != "_"]
            yield from _table(
                ("module", "what it is for"), ((f"`{file.stem}`", _first(file)) for file in inside)
            )


def _first(file: Path) -> str:
    """The first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert text, f"{file} has no docstring"
    return " ".join(text.split("\n\n")[0].split())


def _application(home: Path) -> Flask:
    write_study(home / "foods", "foods", 1)
    return create_app([home / "foods"], now)


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text.rstrip() + "\n", encoding="utf-8")
        print(f"Wrote docs/reference/{name}")
