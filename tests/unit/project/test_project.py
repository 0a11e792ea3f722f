"""Files about the project: contributing, citation, hooks and workflow agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from lore_active import __version__

ROOT = Path(__file__).parents[3]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version_and_names_the_paper():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == __version__
    assert citation["license"] in read("pyproject.toml")
    assert citation["type"] == "software"
    (paper,) = citation["references"]
    assert paper["title"].startswith("LORE") and paper["year"] == 2026
    assert paper["identifiers"][0]["value"] == "arXiv:2602.04192"


def test_hooks_run_the_linters_of_make_lint():
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", read("Makefile"), re.M).group(1)
    programs = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    for entry in entries:
        assert any(program.startswith(entry) for program in programs), entry
    assert len(entries) == len(programs)
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


def test_continuous_integration_runs_everything_with_the_oldest_python():
    (job,) = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"].values()
    oldest = re.search(r'requires-python = ">=([\d.]+)"', read("pyproject.toml")).group(1)
    assert oldest in job["strategy"]["matrix"]["python"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["make test"]
    used = {step["uses"].split("@")[0] for step in job["steps"] if "uses" in step}
    assert used == {"actions/checkout", "actions/setup-python"}


def test_make_check_runs_the_unit_tests_which_start_no_server_or_browser():
    assert re.search(r"^check:.*\n\t.* -m pytest -q tests/unit$", read("Makefile"), re.M)
    files = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
    assert len(files) > 15
    slow = r"^(?:from|import) (?:playwright|tests\.(?:browser|support\.live_server)|benchmarks)"
    for file in files:
        assert not re.search(slow, file.read_text(encoding="utf-8"), re.M), file.name


def test_every_test_is_in_a_folder_named_for_what_it_tests():
    folders = {"unit", "integration", "browser", "compare", "golden", "processors", "salmon"}
    for file in (ROOT / "tests").rglob("test_*.py"):
        kind, *inner = file.relative_to(ROOT / "tests").parts[:-1]
        assert kind in folders, file
        # Tests of all pages are in the folder of the browser tests itself.
        assert len(inner) == (kind in {"unit", "integration"}) or kind == "browser", file
        assert (file.parent / "__init__.py").exists(), file


def test_contributing_names_what_is_there():
    text = read("CONTRIBUTING.md")
    makefile = read("Makefile")
    for target in re.findall(r"`make ([\w-]+)`", text):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for path in re.findall(r"`((?:lore_active|server|tests)/[\w/]+(?:\.\w+)?/?)`", text):
        assert (ROOT / path).exists(), path
    for link in re.findall(r"\]\(([^):#]+)\)", text):
        assert (ROOT / link).exists(), link
