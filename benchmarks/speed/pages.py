"""Time and size of a participant's page: milliseconds from answer to next trial, bytes on the "
"wire."""

from __future__ import annotations

import argparse
import http.client
import re
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.tables import Page
from server.app import create_app
from server.clock import now
from server.processes.web_process import run
from server.study.samples.template import Sample, write_study

TRIALS = 80
WARM = 5
CHANGES = {
    "trials": TRIALS,
    "practice": 0,
    "break_every": 0,
    "rush_ms": 0,
    "answers": 100_000,
}


@dataclass
class Cost:
    """One study's figures; times in milliseconds, sizes in bytes."""

    inside: list[float]
    """In the application alone: routing, transaction with its commit to disk, HTML."""
    outside: list[float]
    """Seen over HTTP on the same machine."""
    trials: list[int]
    first: dict[str, tuple[int, int]]
    """By address: (as sent to a browser, unpacked)."""


def study(home: Path, sample: Sample) -> Path:
    """A sample study that does not end while it is measured."""
    folder = home / sample
    write_study(folder, sample, 1)
    lines = (folder / "study.toml").read_text().splitlines()
    for at, line in enumerate(lines):
        key = line.partition(" = ")[0]
        if key in CHANGES:
            lines[at] = f"{key} = {CHANGES[key]}"
    (folder / "study.toml").write_text("\n".join(lines) + "\n")
    return folder


class Visitor:
    """A participant who answers one trial after the other."""

    def __init__(self, send: Any, name: str) -> None:
        self._send = send
        self.page = send("GET", send("GET", f"/s/{name}/", {}), {})
        for _ in range(2):
            self.step()

    def step(self) -> str:
        """Send the page's form; gives the part that comes back."""
        action = re.search(r'<form[^>]* action="([^"]+)"', self.page)
        assert action is not None, self.page[:400]
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.page))
        fields |= {"side": "left", "agreed": "yes", "timings": '{"rt_ms": 1234.5}'}
        self.page = self._send("POST", action[1], fields)
        return str(self.page)


def measure(folder: Path, answers: int) -> Cost:
    """Serve the study and answer `answers` questions inside and as many over HTTP."""
    app = create_app([folder], now)
    name = folder.name
    client = app.test_client(use_cookies=False)

    def inside(method: str, path: str, fields: dict[str, str]) -> str:
        headers = {"HX-Request": "true"} if method == "POST" else {}
        reply = client.open(path, method=method, data=fields or None, headers=headers)
        return reply.location or reply.text

    listener, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()
    serving = threading.Thread(target=run, args=(app, listener, stop))
    serving.start()
    connection = http.client.HTTPConnection(*listener.getsockname())

    def raw(
        method: str, path: str, fields: dict[str, str], packed: bool = False
    ) -> tuple[Any, bytes]:
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if fields else {}
        headers |= {"HX-Request": "true"} if method == "POST" else {}
        headers |= {"Accept-Encoding": "gzip"} if packed else {}
        connection.request(method, path, urlencode(fields) if fields else None, headers)
        reply = connection.getresponse()
        return reply, reply.read()

    def outside(method: str, path: str, fields: dict[str, str]) -> str:
        reply, body = raw(method, path, fields)
        return reply.headers["Location"] or body.decode()

    cost = Cost([], [], [], {})
    part = ""
    for send, times in ((inside, cost.inside), (outside, cost.outside)):
        while len(times) < answers:
            visitor = Visitor(send, name)
            for count in range(TRIALS - 1):
                begun = time.perf_counter()
                part = visitor.step()
                if count >= WARM:
                    times.append(1000 * (time.perf_counter() - begun))
                    cost.trials.append(len(part.encode()))
    action = re.search(r'action="([^"]+)/answer"', part)
    assert action is not None
    _, whole = raw("GET", action[1], {})
    cost.first["page"] = (len(whole), len(whole))
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', whole.decode()):
        label = address.partition("?")[0].rpartition("/")[2]
        cost.first[label] = (len(raw("GET", address, {}, True)[1]), len(raw("GET", address, {})[1]))
    connection.close()
    stop.set()
    serving.join()
    app.extensions["studies"][name].database.close()
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=500)
    answers = parser.parse_args().answers
    page = Page("pages", "Time and size of a participant's page", "make bench-pages")
    page.text(
        f"{answers} answers, one after the other, {TRIALS} per participant; each is stored by a "
        "commit that waits for the disk before the next trial is sent. The target is a median of "
        "at most 10 ms in the application, 30 kB (compressed) for the first trial and 3 kB for "
        "each further one, without stimuli."
    )
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as home:
        samples: tuple[Sample, ...] = ("foods", "colours")
        for sample in samples:
            costs[sample] = measure(study(Path(home), sample), answers)
    rows = []
    for name, cost in costs.items():
        for where, times in (("in the application", cost.inside), ("over HTTP", cost.outside)):
            quantiles = np.percentile(times, (50, 95, 99))
            rows.append((name, where, *(f"{value:.1f}" for value in quantiles)))
    page.text("## Milliseconds from answer to next trial")
    page.table(("study", "measured", "median", "95 %", "99 %"), rows)
    page.text("## Bytes of a further trial")
    page.table(
        ("study", "median", "most"),
        [(name, int(np.median(cost.trials)), max(cost.trials)) for name, cost in costs.items()],
    )
    page.text("## Bytes of a first load")
    first = costs["colours"].first
    parts = [(name, sent, unpacked) for name, (sent, unpacked) in first.items()]
    total = ("**all**", sum(part[1] for part in parts), sum(part[2] for part in parts))
    page.table(("part", "as sent", "unpacked"), [*parts, total])
    page.write()


if __name__ == "__main__":
    main()
