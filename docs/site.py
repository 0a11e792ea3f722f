"""For `make site`: files outside docs/ that its pages link to become part of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Pages made of files outside docs/, by their name in the site.
PAGES = {"changes.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
# Where links out of docs/ lead in the project, and where in the site.
OUTSIDE = {
    "../../deploy/": "../deploy/",
    "../../CHANGELOG.md": "../changes.md",
    "../CONTRIBUTING.md": "contributing.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, and the files of deploy/ as downloads."""
    for name, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    for file in sorted((ROOT / "deploy").iterdir()):
        files.append(File.generated(config, f"deploy/{file.name}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that cross the border of docs/ at the same pages inside the site."""
    for outside, inside in OUTSIDE.items():
        markdown = markdown.replace(f"]({outside}", f"]({inside}")
    return markdown.replace("](docs/", "](") if page.file.src_uri in PAGES else markdown
