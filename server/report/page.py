"""The page of a report: scripts, styles, images and data in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from server.paths import place
from server.views.headers import PLOT_STYLE

LIBRARIES = ("vendor/d3-7.9.0.min.js", "vendor/plot-0.6.17.umd.min.js")
ENTRY = "report/main.js"
STYLES = ("monitor/monitor.css", "report/report.css")
_IMPORT = re.compile(
    r'^import (?:\* as (?P<whole>\w+)|\{ (?P<names>[\w, ]+) \}) from "(?P<file>[\w./]+)";\n', re.M
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) (?P<name>\w+))", re.M)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.M)


def rendered(contents: dict[str, Any], data: dict[str, Any]) -> str:
    """The whole file; `contents` are for the template, `data` for the scripts."""
    static = place("static")
    scripts = [(static / name).read_text("utf-8") for name in LIBRARIES]
    scripts.append(bundle(static, ENTRY))
    style = "\n".join((static / name).read_text("utf-8") for name in STYLES)
    environment = Environment(
        loader=FileSystemLoader(place("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    icon = base64.b64encode((static / "icon.svg").read_bytes()).decode()
    return environment.get_template("report/report.html").render(
        **contents,
        policy=policy(scripts, style),
        icon=f"data:image/svg+xml;base64,{icon}",
        style=inside(style, "style"),
        scripts=[inside(script, "script") for script in scripts],
        data=Markup(harmless(data)),
    )


def policy(scripts: list[str], style: str) -> str:
    """The content security policy: nothing is fetched, and only these scripts run."""
    own = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {own}; style-src {_hash(style)} {PLOT_STYLE}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def harmless(data: Any) -> str:
    """JSON that is safe inside a script element, whatever texts it contains."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def inside(text: str, tag: str) -> Markup:
    """A script or style, marked as safe to embed in a page."""
    if re.search(rf"</{tag}|<!--", text, re.I):
        raise ValueError(f"This {tag} would end its own element.")
    return Markup(text)


def bundle(static: Path, entry: str) -> str:
    """A module and everything that it imports as one script.

    A page opened from disk may not load modules, so each becomes a function that is called once.
    Only those forms of import and export are supported that our own modules use.
    """
    done: dict[str, str] = {}
    _add(static, entry, done)
    return '"use strict";\nconst modules = {};\n' + "\n".join(done.values())


def _add(static: Path, name: str, done: dict[str, str]) -> None:
    if name in done:
        return
    text = (static / name).read_text("utf-8")
    heads = []
    for match in _IMPORT.finditer(text):
        file = (static / name).parent / match["file"]
        other = str(file.resolve().relative_to(static.resolve()).as_posix())
        _add(static, other, done)
        wanted = match["whole"] or f"{{ {match['names'].replace(' as ', ': ')} }}"
        heads.append(f'const {wanted} = modules["{other}"];')
    exports = ", ".join(match["name"] for match in _EXPORT.finditer(text))
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    if left := _LEFT.search(body):
        raise ValueError(f"{name}: unsupported import or export in a report: {left[0]}")
    done[name] = (
        f'modules["{name}"] = (() => {{\n{chr(10).join(heads)}\n{body}\nreturn {{ {exports} }};\n'
        "})();"
    )
