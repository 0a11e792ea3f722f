"""Generate the reference pages from the code: commands, columns, URLs, modules, stages.

Run from the project's folder: python -m docs.reference.make. A test checks that they are current.
"""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from flask import Flask

from docs.reference.columns import columns
from docs.reference.parts import NOTE, application, table
from lore_active.stopping.criteria import CRITERIA
from lore_active.stopping.stages import STAGES, Stage
from server.cli.main import main as lore_active

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
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
        (f"**{stage.name}**", stage.when, stage.headline, stage.explanation, _shown(stage))
        for stage in STAGES
    )
    heads = ("stage", "recognised by", "headline", "explanation", "criteria shown")
    yield from table(heads, rows)
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
    yield from table(("name", "title", "while it is not met"), about)


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
    options = [
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]
    if options:
        rows = [
            (_names(option, context), _default(option, context), _meaning(option))
            for option in options
        ]
        yield from table(("option", "default", "meaning"), rows)


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
        app = application(Path(home))
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
        yield from table(("URL", "method", "who", "what"), chosen)


def _rule(app: Flask, rule: Any) -> tuple[str, str, str, str, str]:
    view = app.view_functions[rule.endpoint]
    methods = ", ".join(sorted(rule.methods - {"HEAD", "OPTIONS"}))
    who = ", ".join(ROLES[role] for role in getattr(view, "open_to", ("anybody",)))
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
            yield from table(
                ("module", "what it is for"), ((f"`{file.stem}`", _first(file)) for file in inside)
            )


def _first(file: Path) -> str:
    """The first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert text, f"{file} has no docstring"
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text.rstrip() + "\n", encoding="utf-8")
        print(f"Wrote docs/reference/{name}")
