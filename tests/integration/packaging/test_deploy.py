"""What is in deploy/: linted where a linter is there, and always held to the rules that matter."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.cli.main import main

DEPLOY = Path(__file__).parents[3] / "deploy"
SERVICE, NGINX, CADDY, DOCKER = (
    DEPLOY / name for name in ("lore-active.service", "nginx.conf", "Caddyfile", "Dockerfile")
)


def instructions():
    """(instruction, arguments) of the Dockerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKER.read_text(), flags=re.M)
    text = text.replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def test_the_image_is_pinned_rootless_watched_and_holds_no_secret():
    found = instructions()
    stages = [what for name, what in found if name == "FROM"]
    for base in stages:
        assert re.match(r"python:3\.\d+\.\d+-[a-z-]+( AS \w+)?$", base), base
    last = found[max(at for at, finding in enumerate(found) if finding[0] == "FROM") :]
    named = dict(last)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", named["USER"])
    assert [name for name, _ in last].index("USER") > [name for name, _ in last].index("RUN")
    assert "/health" in named["HEALTHCHECK"]
    assert named["ENTRYPOINT"] == '["lore-active"]'
    for name, what in found:
        assert name != "ADD"
        assert not re.search(r"(?i)password|secret|token|api_?key", what)
        if name == "COPY" and "--from" not in what:
            for source in what.split()[:-1]:
                assert (DEPLOY.parent / source).exists(), source
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignored
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        one
        for n, what in found
        if n == "COPY" and "--from" not in what
        for one in what.split()[:-1]
    }
    assert copied == let_in


def test_hadolint_finds_nothing():
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if linter is None:
        assert "CI" not in os.environ, "hadolint is one of the tools of the extra dev"
        pytest.skip("hadolint is not installed")
    result = subprocess.run([linter, str(DOCKER)], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "")


def options_of(command):
    return {option for param in main.commands[command].params for option in param.opts}


@pytest.mark.parametrize("file", [SERVICE, NGINX, CADDY, DOCKER], ids=lambda file: file.name)
def test_commands_have_the_options_that_are_given(file):
    lines = [line for line in file.read_text().splitlines() if "lore-active serve" in line]
    assert lines
    for line in lines:
        options = set(re.findall(r"--[a-z-]+", line.partition("lore-active serve")[2]))
        assert options <= options_of("serve"), line


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(SERVICE)
    return parser


def test_the_unit_is_sandboxed():
    service = unit()["Service"]
    assert service["User"] not in ("", "root")
    assert service["NoNewPrivileges"] == service["ProtectHome"] == service["PrivateTmp"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["UMask"] == "0077"
    # The supervisor must be able to end its children itself.
    assert service["KillMode"] == "mixed"
    assert "MemoryDenyWriteExecute" not in service, "numba could not compile"
    assert "--proxy 127.0.0.1" in service["ExecStart"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    text = SERVICE.read_text().replace("/opt/lore-active/bin/lore-active", sys.executable)
    (tmp_path / SERVICE.name).write_text(text)
    result = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / SERVICE.name)], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_proxies_say_who_comes_and_how():
    nginx = NGINX.read_text()
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in nginx, "replaced, not added to"
    assert "proxy_set_header X-Forwarded-Proto $scheme;" in nginx
    assert "proxy_set_header Host $http_host;" in nginx
    assert "return 301 https://" in nginx
    assert "TLSv1 " not in nginx and "TLSv1.1" not in nginx
    assert nginx.count("{") == nginx.count("}")
    ports = {re.search(r"127\.0\.0\.1:(\d+)", text).group(1) for text in (nginx, CADDY.read_text())}
    assert ports == {"8000"}
    assert "Environment=PORT=8000" in SERVICE.read_text()
