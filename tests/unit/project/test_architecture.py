"""The house rules that a reader relies on, checked by tests."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lore_active.reproducibility import numerical_modules

ROOT = Path(__file__).parents[3]
MODULES = sorted(ROOT.glob("lore_active/**/*.py"))
FORBIDDEN = {
    *("click", "flask", "sqlite3", "socket", "urllib", "http", "requests", "server", "pickle"),
    *("time", "datetime", "random"),
}
FILES = [*MODULES, *sorted(ROOT.glob("server/**/*.py"))]
SCRIPTS = [file for part in ("benchmarks", "docs") for file in sorted(ROOT.glob(f"{part}/**/*.py"))]
TESTS = sorted(ROOT.glob("tests/**/test_*.py"))
MAX_MODULES, MAX_LINES = 12, 350


def name_of(file):
    """A file's module, by its dotted name."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_the_library_is_pure(file):
    assert not set(imports(file)) & FORBIDDEN


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_module_says_what_it_is_for(file):
    assert ast.get_docstring(ast.parse(file.read_text()))


def needed_by(file, known):
    """The modules of ours that a module imports, inside functions too, but not for types alone."""
    tree = ast.parse(file.read_text())
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_module_needs_itself():
    """Of a cycle of imports, no part can be read, tested or moved alone."""
    known = {name_of(file): file for file in FILES}
    needs = {
        name: {*needed_by(file, known)} & known.keys() - {name} for name, file in known.items()
    }
    # Whatever needs nothing that is left cannot be part of a cycle.
    while free := [name for name, others in needs.items() if not others & needs.keys()]:
        for name in free:
            del needs[name]
    assert not needs


# What a learner imports, but no number that it computes depends on: input, names and sentences.
WITHOUT_NUMBERS = {
    *("_version", "errors", "reproducibility", "types", "wording"),
    *("stopping.criteria", "stopping.stages", "stopping.verdict"),
}


def test_the_fingerprint_covers_all_that_a_learner_computes_with():
    known = {name_of(file): file for file in FILES}
    covered = {name_of(file) for file in numerical_modules()}
    reached, todo = set(), ["lore_active.learner.learner"]
    while todo:
        name = todo.pop()
        if name in known and name not in reached:
            reached.add(name)
            todo += needed_by(known[name], known)
    ours = {name.removeprefix("lore_active.") for name in reached - covered}
    # Of what reads data, only the values that are passed on matter.
    assert {name for name in ours if not name.startswith("data.")} == WITHOUT_NUMBERS
    assert {"lore_active.data.comparisons", "lore_active.data.triplets"} <= covered <= known.keys()


def test_folders_can_be_read_at_a_glance():
    files = [file for file in (*FILES, *SCRIPTS, *TESTS) if file.name != "__init__.py"]
    counts = Counter(str(file.parent.relative_to(ROOT)) for file in files)
    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}


@pytest.mark.parametrize("file", [*FILES, *SCRIPTS], ids=name_of)
def test_long_modules_say_why_they_are(file):
    text = file.read_text()
    lines = len(text.splitlines())
    assert lines <= MAX_LINES or "One module, though long:" in text, f"{lines} lines"


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `((?:lore_active|server)/[\w/]*)` \| (.*) \|$", re.M)


def test_the_architecture_page_names_every_package():
    packages = {f"{file.parent.relative_to(ROOT)}/" for file in FILES if file.name == "__init__.py"}
    assert [folder for folder, _ in ROW.findall(PAGE)] == list(dict(ROW.findall(PAGE)))
    assert set(dict(ROW.findall(PAGE))) == packages


def test_modules_that_the_architecture_page_names_exist():
    paths = re.findall(r"`((?:lore_active|server|docs|tests)/[\w/]+\.\w+)`", PAGE)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
    for folder, holds in ROW.findall(PAGE):
        for name in re.findall(r"`([a-z_]+)`", holds):
            assert (ROOT / folder / f"{name}.py").exists(), f"{folder}{name}.py"


def test_a_read_only_install_falls_back_to_memory(tmp_path):
    shutil.copytree(
        ROOT / "lore_active", tmp_path / "lore_active", ignore=shutil.ignore_patterns("__pycache__")
    )
    # Files where the cache folders should be: unwritable even for an administrator.
    for package in (tmp_path / "lore_active").glob("**/__init__.py"):
        (package.parent / "__pycache__").write_text("")
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    # Each kernel meets the missing cache when it is imported; compiling one shows that it can be.
    code = (
        "import lore_active, numpy as np; from lore_active import warmup;"
        "from lore_active.embedding import algebra;"
        "print(lore_active.__file__, algebra.inner(np.eye(2), np.eye(2)))"
    )
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "XDG"))
    }
    environment |= {
        "PYTHONPATH": str(tmp_path),
        "HOME": str(nowhere),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(tmp_path / "lore_active" / "__init__.py"), "2.0"]


@pytest.mark.parametrize("name", ["new", "check", "password", "serve"])
def test_commands_that_compute_nothing_load_nothing_that_computes(name):
    code = (
        "import sys; from server.cli.main import main; main.commands[sys.argv[1]];"
        "sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, name], check=False).returncode == 0


def test_a_process_that_computes_loads_only_what_it_needs():
    """Each worker, and each process of a sweep, is waited for; these take longer than its work."""
    code = "import sys; import lore_active, lore_active.warmup; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scipy.linalg" in told.stdout.split()
    slow = {"scipy.integrate", "scipy.optimize", "scipy.sparse", "scipy.stats", "matplotlib"}
    assert not slow & set(told.stdout.split())


def test_commands_that_compute_have_one_thread_of_every_library():
    code = """
from threadpoolctl import threadpool_info
from lore_active.warmup import warm
from server.cli.main import main
@main.command()
def look():
    warm()
    print([one["num_threads"] for one in threadpool_info()])
main(["look"])
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        check=True,
    )
    assert set(json.loads(result.stdout)) == {1}
