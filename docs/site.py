"""For `make site`: files from outside docs/ that its pages link to are part of the site, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Where a link leads in the project, and where in the site.
OUTSIDE = {"../../deploy/": "../deploy/", "../../CHANGELOG.md": "../changes.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the changes as a page, and what is in deploy/ as files to take."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changes.md", content=changes))
    for one in sorted((ROOT / "deploy").iterdir()):
        files.append(File.generated(config, f"deploy/{one.name}", abs_src_path=str(one)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that lead out of docs/ lead to the same files inside the site."""
    for outside, inside in OUTSIDE.items():
        markdown = markdown.replace(f"]({outside}", f"]({inside}")
    return markdown
