"""`serve --proxy` from the command line to the cookie."""

from __future__ import annotations

import urllib.request

from click.testing import CliRunner

from benchmarks.server import Serving
from server.cli.main import main
from tests.support.live_server import write_study


def test_the_proxy_is_believed_through_all_of_serve(tmp_path):
    server = Serving(str(write_study(tmp_path / "words")), "--web", "1", "--proxy", "127.0.0.1")
    try:
        said = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
        request = urllib.request.Request(server.address() + "/monitor/", headers=said)
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert "; Secure" in reply.headers["Set-Cookie"]
    finally:
        assert server.stop() == 0


def test_a_proxy_is_named_by_its_address(tmp_path):
    result = CliRunner().invoke(main, ["serve", str(tmp_path), "--proxy", "nginx"])
    assert result.exit_code == 2
    assert "--proxy is 'nginx', but must be the address" in result.stderr
