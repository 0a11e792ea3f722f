"""html-validate over pages as the server sends them; `make html-validate` installs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

COMMAND = (
    Path(__file__).parents[2] / "build" / "html-validate/node_modules/html-validate/bin"
) / "html-validate.mjs"
# Everything that it recommends, but several fields of one name may be a list.
CONFIG = {
    "root": True,
    "extends": ["html-validate:recommended"],
    "rules": {"form-dup-name": "off"},
}


def findings(folder: Path, pages: dict[str, str]) -> list[str]:
    """What it finds in these pages (by name), each with its place."""
    node = shutil.which("node")
    if node is None or not COMMAND.is_file():
        if os.environ.get("CI"):
            pytest.fail("html-validate is not installed (`make html-validate`), and CI needs it.")
        pytest.skip("HTML NOT VALIDATED: `make html-validate` installs html-validate (needs npm)")
    (folder / ".htmlvalidate.json").write_text(json.dumps(CONFIG))
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page)
    done = subprocess.run(
        [node, COMMAND, "--formatter", "json=found.json", *(f"{name}.html" for name in pages)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return [
        f"{Path(file['filePath']).name}:{message['line']}: "
        f"{message['ruleId']}: {message['message']}"
        for file in json.loads((folder / "found.json").read_text())
        for message in file["messages"]
    ]
