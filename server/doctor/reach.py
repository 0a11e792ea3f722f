"""Checks of the network: is the port free, and are the pages delivered correctly?"""

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
from lore_active.wording import many
from server.doctor.finding import Finding, ok, problem, warning
from server.processes.rehearsal import DATA, copied
from server.processes.supervisor import Supervisor
from server.study.loading import InvalidStudy, load
from server.study.samples.template import write_study

WAIT_SECONDS = 90.0
SLOW_SECONDS = 1.0
SHOWN = 5
# A copy is served, so that the study itself gets no visitors; larger studies are not copied.
LARGEST_COPY = 300e6
LEFT_OUT = shutil.ignore_patterns(*DATA, "password")
NEEDED = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
# Browsers reject scripts and styles of another type.
TYPES = {".js": ("text/javascript", "application/javascript"), ".css": ("text/css",)}


def examine(folder: Path | None, host: str, port: int) -> Iterator[Finding]:
    """Check the given port, then the pages, served on a port of their own."""
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
                f"{host} port {port}: in use by a lore-active server",
                "Fine if that server runs this study; otherwise choose another port with --port.",
            )
        # Python appends the address, which the message already has.
        why = str(error.strerror or error).partition(" (while")[0]
        return problem(
            "port",
            f"{host} port {port} is not available: {why}",
            "Stop the program that uses it, or choose another with --host and --port.",
        )
    return ok("port", f"{host} port {port} is free")


def _is_ours(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=3)
    try:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        health = json.loads(reply.read(1000))
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return reply.headers.get("Server") == "lore-active" and "ok" in health


def _openness(host: str) -> Finding:
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if local:
        return ok(
            "network",
            f"{host}: reachable only from this machine; others need a reverse proxy with TLS",
        )
    return warning(
        "network",
        f"{host}: reachable from other machines, without encryption",
        "Fine within a lab. On the internet, put nginx or Caddy with TLS in front.",
    )


def _copy(folder: Path | None, home: Path) -> Path:
    """Copy the study without its data; use a sample if there is none that can be served."""
    if folder is not None:
        try:
            study = load(folder)
            names = {entry.name for entry in folder.iterdir()}
            tops = [folder / name for name in names - LEFT_OUT(str(folder), list(names))]
            files = [file for top in tops for file in (top, *top.rglob("*")) if file.is_file()]
            size = sum(file.stat().st_size for file in files)
            if size <= LARGEST_COPY:
                return copied(folder, home / study.name, "password")
        except (InvalidStudy, OSError):
            pass
    write_study(home / "sample", "foods", 1)
    return home / "sample"


def _pages(folder: Path) -> Iterator[Finding]:
    stop, ready = threading.Event(), threading.Event()
    address: list[str] = []
    errors: list[str] = []

    def live() -> None:
        # Created in this thread, because a study's lock belongs to the thread that acquired it.
        try:
            supervisor = Supervisor(
                [folder], "127.0.0.1", 0, 1, 0, 0, 1.0, lambda line: ready.set()
            )
            address.append(supervisor.address)
            supervisor.run(stop)
        except LoreError as error:
            errors.append(str(error))
        finally:
            ready.set()

    begun = time.monotonic()
    thread = threading.Thread(target=live, name="server under test")
    thread.start()
    try:
        if not ready.wait(WAIT_SECONDS):
            errors.append(f"did not start in {WAIT_SECONDS:.0f} s")
        if errors:
            advice = "Start `lore-active serve` and read its messages."
            yield problem("server", errors[0], advice)
            return
        yield ok("server", f"web server and worker started in {time.monotonic() - begun:.1f} s")
        yield from _look(address[0], folder.name)
    finally:
        stop.set()
        thread.join()


def _look(address: str, name: str) -> Iterator[Finding]:
    """Fetch a participant's page as a browser would, with every file it loads."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    errors: list[str] = []
    begun = time.perf_counter()
    try:
        _, place, _ = _fetch(connection, f"/s/{name}/", errors)
        headers, _, page = _fetch(connection, place or f"/s/{name}/", errors)
        seconds = time.perf_counter() - begun
        if "text/html" not in headers.get("Content-Type", ""):
            errors.append(f"the page's content type is {headers.get('Content-Type')}")
        loaded = re.findall(r'(?:href|src)="(/[^"]+\.(?:js|css|svg|png)[^"]*)"', page)
        for path in loaded:
            path_headers, _, _ = _fetch(connection, path, errors)
            kinds = TYPES.get(Path(urlsplit(path).path).suffix)
            kind = path_headers.get("Content-Type", "").partition(";")[0]
            if kinds and kind not in kinds:
                errors.append(f"{path} has the content type {kind}, which browsers reject")
    except (OSError, http.client.HTTPException) as error:
        yield problem(
            "browser reach",
            f"the connection to {address} failed: {error}",
            "A firewall, virus scanner or proxy setting on this machine interferes.",
        )
        return
    finally:
        connection.close()
    if errors:
        yield problem(
            "browser reach",
            "; ".join(errors[:SHOWN]),
            "Reinstall lore-active. On Windows, other programs sometimes change the type "
            "of .js files.",
        )
        return
    files = many(len(loaded), "file")
    timing = f"a participant's page and its {files} loaded in {1000 * seconds:.0f} ms"
    if seconds > SLOW_SECONDS:
        yield warning(
            "browser reach", timing, "This machine is busy; check which other programs are running."
        )
    else:
        yield ok("browser reach", timing + ", with security headers")


def _fetch(
    connection: http.client.HTTPConnection, path: str, errors: list[str]
) -> tuple[dict[str, str], str, str]:
    """Return headers, redirect target and text; append what is wrong to `errors`."""
    connection.request("GET", path, headers={"User-Agent": "lore-active doctor"})
    reply = connection.getresponse()
    text = reply.read().decode("utf-8", "replace")
    headers = dict(reply.getheaders())
    if reply.status not in (200, 303):
        errors.append(f"{path} has status {reply.status}")
    for name, wanted in NEEDED.items():
        if not headers.get(name, "").startswith(wanted):
            errors.append(f"{path} lacks {name}: {wanted}")
    return headers, headers.get("Location", ""), text
