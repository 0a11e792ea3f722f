"""The README and the how-to pages keep their word: commands, links, settings, the site."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from server.cli.main import main
from server.study.parsing import read
from tests.support.documented_steps import INSTEAD, NOT_HERE, ROOT, blocks, commands, follow

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
LOADED = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="([^"]+)"')
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_command_of_the_readme_does_what_it_should(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {line.split()[1] for line in follow(README)} == {
        *("new", "check", "doctor", "serve", "plan", "export"),
        *("report", "replay", "forget", "reset", "fit"),
    }
    assert (tmp_path / "results" / "embedding.csv").exists()


def test_what_is_not_run_is_there():
    said = {line for page in (README, TUTORIAL) for line in commands(page)}
    assert said >= NOT_HERE | set(INSTEAD), "a line that nobody reads any more"
    makefile = (ROOT / "Makefile").read_text()
    for line in NOT_HERE:
        program, target = line.split()[:2]
        if program == "make":
            assert re.search(rf"^{target}:", makefile, re.M), line
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"lore-active": "server.cli.main:main"}
    for line, other in INSTEAD.items():
        assert line.split()[1] == other.split()[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_options_that_are_shown_exist(page):
    if page.parent.name == "reference":
        return
    text = "\n".join(blocks(page, "", "sh"))
    text = text.replace("\\\n", "")
    for line in re.findall(r"(?:^|/| )lore-active ([a-z]+ .*)$", text, re.M):
        name, *rest = shlex.split(line, comments=True)
        assert name in main.commands, f"lore-active {line}"
        known = {option for param in main.commands[name].params for option in param.opts}
        used = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert used <= known, f"lore-active {line}"


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_settings_that_are_shown_are_valid(page):
    for text in blocks(page, "toml"):
        problems = []
        assert read('title = "T"\n' + text, problems)
        assert problems == []


def test_links_of_the_readme_lead_somewhere():
    text = README.read_text()
    found = re.findall(r'\]\(([^)#]+)[^)]*\)|src="([^"]+)"', text)
    links = [one or other for one, other in found]
    assert len(links) > 20
    for link in links:
        assert (ROOT / link).exists(), link


def test_docs_build_into_a_site_that_loads_nothing_from_elsewhere(tmp_path):
    """Strictly: a broken link or a page that is nowhere in the contents is an error."""
    if importlib.util.find_spec("mkdocs") is None:
        assert "CI" not in os.environ, "mkdocs is in the extra docs"
        pytest.skip("mkdocs is not installed")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert not [one for one in loaded if re.match(r"(https?:)?//", one)], page
    assert (tmp_path / "deploy" / "nginx.conf").exists()
    assert not list(tmp_path.rglob("*.py"))
