"""The house rules that a reader relies on, checked instead of promised."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(ROOT.glob("lore_active/**/*.py"))
FORBIDDEN = {"flask", "sqlite3", "socket", "urllib", "http", "requests", "server", "pickle"}


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_the_library_is_pure(file):
    allowed_clock = file.name == "fitting.py"
    found = set(imports(file))
    assert not found & FORBIDDEN
    assert allowed_clock or not found & {"time", "datetime", "random"}


@pytest.mark.parametrize(
    "file", [*MODULES, *sorted(ROOT.glob("server/**/*.py"))], ids=lambda file: file.stem
)
def test_every_module_says_what_it_is_for(file):
    assert ast.get_docstring(ast.parse(file.read_text()))


def test_a_read_only_install_falls_back_to_memory(tmp_path):
    shutil.copytree(
        ROOT / "lore_active", tmp_path / "lore_active", ignore=shutil.ignore_patterns("__pycache__")
    )
    # A file where the cache folder should be: unwritable even for an administrator.
    (tmp_path / "lore_active" / "__pycache__").write_text("")
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    # Each kernel meets the missing cache when it is imported; compiling one shows that it can be.
    code = (
        "import lore_active, numpy as np; from lore_active import algebra, warming;"
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
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == [str(tmp_path / "lore_active" / "__init__.py"), "2.0"]


@pytest.mark.parametrize("name", ["new", "check", "password", "serve"])
def test_commands_that_compute_nothing_load_nothing_that_computes(name):
    code = (
        "import sys; from server.commands import main; main.commands[sys.argv[1]];"
        "sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, name], check=False).returncode == 0


def test_commands_that_compute_have_one_thread_of_every_library():
    code = """
from threadpoolctl import threadpool_info
from lore_active.warming import warm
from server.commands import main
@main.command()
def look():
    warm()
    print([one["num_threads"] for one in threadpool_info()])
main(["look"])
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
        check=True,
    )
    assert set(json.loads(told.stdout)) == {1}
