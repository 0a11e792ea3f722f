"""Reaching the study: can the port be had, and do the real pages come through it as they should?"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lore_active.errors import LoreError
from server.doctor.finding import Finding, ok, problem, warning
from server.processes.rehearsal import DATA, copied
from server.processes.supervisor import Supervisor
from server.study.loading import InvalidStudy, load
from server.study.samples.template import write_study

WAIT_SECONDS = 90.0
SLOW_SECONDS = 1.0
SHOWN = 5
# A copy is served, so that the study itself gets no visitor; but not of gigabytes.
LARGEST_COPY = 300e6
LEFT_OUT = shutil.ignore_patterns(*DATA, "password")
NEEDED = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# Browsers refuse scripts and styles of another type.
TYPES = {".js": ("text/javascript", "application/javascript"), ".css": ("text/css",)}


def examine(folder: Path | None, host: str, port: int) -> Iterator[Finding]:
    """The port that was asked for, then the pages on a port of their own."""
    yield _port(host, port)
    yield _openness(host)
    with tempfile.TemporaryDirectory(prefix="lore-active-doctor-") as home:
        yield from _pages(_copy(folder, Path(home)))


def _port(host: str, port: int) -> Finding:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if _is_ours(host, port):
            return warning(
                "port",
                f"{host} port {port}: a lore-active server answers there",
                "All is well if it is this study's; otherwise choose another with --port.",
            )
        # Python adds the address, which stands there already.
        why = str(error.strerror or error).partition(" (while")[0]
        return problem(
            "port",
            f"{host} port {port} cannot be had: {why}",
            "Stop what uses it, or choose another address with --host and --port.",
        )
    return ok("port", f"{host} port {port} is free")


def _is_ours(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=3)
    try:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        found = json.loads(reply.read(1000))
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return reply.headers.get("Server") == "lore-active" and "ok" in found


def _openness(host: str) -> Finding:
    try:
        alone = ipaddress.ip_address(host).is_loopback
    except ValueError:
        alone = host == "localhost"
    if alone:
        return ok("network", f"{host}: only this machine gets in, so others need a proxy with TLS")
    return warning(
        "network",
        f"{host}: others get in without encryption",
        "Fine in a lab of your own. On the internet put nginx or Caddy with TLS in front.",
    )


def _copy(folder: Path | None, home: Path) -> Path:
    """The study without its data; a sample if there is none that could be served."""
    if folder is not None:
        try:
            study = load(folder)
            names = {one.name for one in folder.iterdir()}
            tops = [folder / name for name in names - LEFT_OUT(str(folder), list(names))]
            files = [file for top in tops for file in (top, *top.rglob("*")) if file.is_file()]
            weight = sum(file.stat().st_size for file in files)
            if weight <= LARGEST_COPY:
                return copied(folder, home / study.name, "password")
        except (InvalidStudy, OSError):
            pass
    write_study(home / "sample", "foods", 1)
    return home / "sample"


def _pages(folder: Path) -> Iterator[Finding]:
    stop, settled = threading.Event(), threading.Event()
    address: list[str] = []
    trouble: list[str] = []

    def live() -> None:
        # Made here, because a study's lock belongs to the thread that took it.
        try:
            supervisor = Supervisor(
                [folder], "127.0.0.1", 0, 1, 0, 0, 1.0, lambda line: settled.set()
            )
            address.append(supervisor.address)
            supervisor.run(stop)
        except LoreError as error:
            trouble.append(str(error))
        finally:
            settled.set()

    begun = time.monotonic()
    thread = threading.Thread(target=live, name="server under examination")
    thread.start()
    try:
        if not settled.wait(WAIT_SECONDS):
            trouble.append(f"did not start in {WAIT_SECONDS:.0f} s")
        if trouble:
            advice = "Start lore-active serve by hand and read what it says."
            yield problem("server", trouble[0], advice)
            return
        yield ok("server", f"web and learner started in {time.monotonic() - begun:.1f} s")
        yield from _look(address[0], folder.name)
    finally:
        stop.set()
        thread.join()


def _look(address: str, name: str) -> Iterator[Finding]:
    """A participant's page as a browser would get it, with everything that it loads."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    faults: list[str] = []
    begun = time.perf_counter()
    try:
        _, place, _ = _fetch(connection, f"/s/{name}/", faults)
        headers, _, page = _fetch(connection, place or f"/s/{name}/", faults)
        seconds = time.perf_counter() - begun
        if "text/html" not in headers.get("Content-Type", ""):
            faults.append(f"the page's type is {headers.get('Content-Type')}")
        loaded = re.findall(r'(?:href|src)="(/[^"]+\.(?:js|css|svg|png)[^"]*)"', page)
        for one in loaded:
            got, _, _ = _fetch(connection, one, faults)
            kinds = TYPES.get(Path(urlsplit(one).path).suffix)
            kind = got.get("Content-Type", "").partition(";")[0]
            if kinds and kind not in kinds:
                faults.append(f"{one} has the type {kind}, which browsers refuse")
    except (OSError, http.client.HTTPException) as error:
        yield problem(
            "browser reach",
            f"{address} broke off: {error}",
            "A firewall, virus scanner or proxy setting on this machine is in the way.",
        )
        return
    finally:
        connection.close()
    if faults:
        yield problem(
            "browser reach",
            "; ".join(faults[:SHOWN]),
            "Reinstall lore-active. On Windows, programs sometimes change the types of .js files.",
        )
        return
    found = f"a participant's page and its {len(loaded)} files came in {1000 * seconds:.0f} ms"
    if seconds > SLOW_SECONDS:
        yield warning("browser reach", found, "This machine is busy; see what else runs on it.")
    else:
        yield ok("browser reach", found + ", with their safety headers")


def _fetch(
    connection: http.client.HTTPConnection, path: str, faults: list[str]
) -> tuple[dict[str, str], str, str]:
    """Headers, where it leads to, and text; what is amiss goes to `faults`."""
    connection.request("GET", path, headers={"User-Agent": "lore-active doctor"})
    reply = connection.getresponse()
    text = reply.read().decode("utf-8", "replace")
    headers = dict(reply.getheaders())
    if reply.status not in (200, 303):
        faults.append(f"{path} has status {reply.status}")
    for name, wanted in NEEDED.items():
        if not headers.get(name, "").startswith(wanted):
            faults.append(f"{path} lacks {name}: {wanted}")
    return headers, headers.get("Location", ""), text
