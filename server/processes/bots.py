"""Simulated participants who go through the real pages over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import click
import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.types import Floats
from server.collection import simulated
from server.processes.lifetime import stop_signal
from server.study.config import LoadedStudy
from server.study.items.display import items_by_name
from server.study.items.positions import read_positions
from server.study.workspace import load_study

TRIES = 40


class BotPage(HTMLParser):
    """What a bot sees of a page: the form, its hidden fields, its buttons and items."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.buttons: list[tuple[str, str]] = []
        self.items: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of forms, fields, buttons and items."""
        held = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None:
            self.action = held.get("action")
        elif tag == "input" and held.get("type") == "hidden":
            self.fields[held.get("name", "")] = held.get("value", "")
        elif tag == "textarea":
            self.fields[held.get("name", "")] = ""
        elif tag == "button":
            self.buttons.append((held.get("name", ""), held.get("value", "")))
        if "data-item" in held:
            self.items.append(held["data-item"])


class Browser:
    """A connection that is kept, with retries: the same request may be sent twice."""

    def __init__(self, address: str, stop: threading.Event, secret: str = "") -> None:
        self.address = address
        self._secret = secret
        self._stop = stop
        self._connection: http.client.HTTPConnection | None = None
        self.status = 0
        self.seconds = 0.0
        self.retries = 0

    def get(self, url: str) -> str:
        """A page, redirects followed."""
        return self._send("GET", url, None)

    def post(self, url: str, fields: dict[str, str]) -> str:
        """The part of the page that follows, as a browser with htmx gets it."""
        return self._send("POST", url, urlencode(fields))

    def _send(self, method: str, url: str, body: str | None) -> str:
        url = urljoin(self.address, url)
        for attempt in range(TRIES):
            if self._stop.is_set():
                raise InterruptedError
            try:
                begun = time.perf_counter()
                status, headers, text = self._once(method, url, body)
                self.seconds = time.perf_counter() - begun
            except (OSError, http.client.HTTPException):
                self.close()
                self.retries += 1
                self._stop.wait(min(2.0, 0.05 * 2**attempt))
                continue
            if status in (301, 302, 303):
                return self._send("GET", urljoin(url, headers["location"]), None)
            self.status = status
            if status == 503:
                self.retries += 1
                self._stop.wait(min(2.0, 0.1 * 2**attempt))
                continue
            return text
        raise ConnectionError(f"{url} did not answer in {TRIES} tries.")

    def _once(self, method: str, url: str, body: str | None) -> tuple[int, dict[str, str], str]:
        parts = urlsplit(url)
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                parts.hostname or "127.0.0.1", parts.port, timeout=30
            )
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {"User-Agent": "lore-active bot"}
        if self._secret:
            headers[simulated.HEADER] = self._secret
        if method == "POST":
            headers["HX-Request"] = "true"
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body, headers)
        reply = self._connection.getresponse()
        text = reply.read().decode("utf-8", "replace")
        held = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, held, text

    def close(self) -> None:
        """Let go of the connection; the next request makes a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Bot:
    """One simulated participant: from the link to the last page."""

    def __init__(
        self,
        study: LoadedStudy,
        names: dict[str, int],
        observer: Observer,
        browser: Browser,
        think: float,
        seed: int,
    ) -> None:
        self._study = study
        self._names = names
        self._observer = observer
        self._browser = browser
        self._think = think
        self._rng = np.random.default_rng(seed)
        self._lapse = study.settings.bots.lapse
        self._keys = {
            (one.anchor, frozenset((one.nearer, one.farther))): one.nearer for one in study.catches
        }

    def take_part(self, label: str, stop: threading.Event) -> int | None:
        """Go through the study; gives the number of answers, or None if not let in."""
        browser = self._browser
        html = browser.get(f"/s/{self._study.name}/?participant_label={label}")
        answers = 0
        while not stop.is_set():
            page = BotPage(html)
            if page.action is None:
                if "data-paused" in html:
                    stop.wait(1.0)
                    html = browser.get(f"/s/{self._study.name}/?participant_label={label}")
                    continue
                return answers or None
            if page.action.endswith("/answer"):
                answers += 1
            html = browser.post(page.action, self._filled(page, stop))
        return answers

    def _filled(self, page: BotPage, stop: threading.Event) -> dict[str, str]:
        fields = dict(page.fields)
        if page.action is not None and page.action.endswith("/answer"):
            anchor, left, right = (self._names[name] for name in page.items[:3])
            # Not all alike: a median with a long right tail, as people have.
            seconds = self._think * float(self._rng.lognormal(0.0, 0.3))
            onset, begun = 1000 * time.time(), time.perf_counter()
            stop.wait(seconds)
            rt = round(1000 * (time.perf_counter() - begun), 1)
            fields["side"] = self._side(anchor, left, right)
            # As the pages measure it: less, and a bot would be taken for a forger.
            fields["timings"] = json.dumps(
                {"rt_ms": rt, "onset_at": onset, "response_at": onset + rt}
            )
        elif page.buttons and page.buttons[0][0]:
            name, value = page.buttons[0]
            fields[name] = value
        return fields

    def _side(self, anchor: int, left: int, right: int) -> str:
        """What the bot sees nearer; what the study says is nearer, the bot sees so as well."""
        said = self._observer.answer(anchor, left, right)
        known = self._keys.get((anchor, frozenset((left, right))))
        if anchor in (left, right):
            known = anchor
        if known is None:
            return said
        if self._rng.random() < self._lapse:
            return "left" if self._rng.random() < 0.5 else "right"
        return "left" if known == left else "right"


def space_of(study: LoadedStudy, seed: int) -> Floats:
    """Where the bots' items lie: as the study says, or scattered in three dimensions."""
    positions = study.settings.bots.positions
    if positions:
        return read_positions(study.folder / positions, study.items)
    return gaussian_space(len(study.items), 3, seed)


def run_bots(
    study: LoadedStudy,
    address: str,
    count: int,
    seed: int,
    think: float,
    stop: threading.Event,
    secret: str = "",
) -> None:
    """Keep `count` bots busy, each followed by a new one, until nobody is let in any more.

    With the server's secret they are simulated participants; without it they come as people do.
    """
    space, names = space_of(study, seed), items_by_name(study)
    settings = study.settings.bots
    habits = ObserverNoise(noise=settings.noise, lapse=settings.lapse)
    # Another run's bots are other participants, also where the study goes on.
    run = hashlib.sha256(secret.encode()).hexdigest()[:6] if secret else str(seed)
    turned_away: set[int] = set()

    def one_after_the_other(place: int) -> None:
        person = 0
        while not stop.is_set():
            own = int(np.random.SeedSequence([seed, place, person]).generate_state(1)[0])
            browser = Browser(address, stop, secret)
            bot = Bot(study, names, Observer(space, habits, own), browser, think, own)
            try:
                if bot.take_part(f"bot-{run}-{place + 1}-{person + 1}", stop) is None:
                    if browser.status == 403:
                        raise PermissionError(f"{address} does not know these bots.")
                    # Full or stopped; it may be reopened.
                    turned_away.add(place)
                    stop.wait(2.0)
                    continue
            except (InterruptedError, ConnectionError):
                stop.wait(1.0)
                continue
            finally:
                browser.close()
            person += 1

    threads = [
        threading.Thread(target=one_after_the_other, args=(place,), daemon=True)
        for place in range(count)
    ]
    for thread in threads:
        thread.start()
    said = False
    while not stop.wait(0.5):
        if len(turned_away) == count and not said:
            said = True
            print(
                f"{study.name}: the bots have finished. The study is open to people as before.",
                flush=True,
            )
    for thread in threads:
        thread.join(2.0)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("address")
@click.option("--bots", type=int, default=5)
@click.option("--seed", type=int, default=0)
@click.option("--think", type=float, default=1.0)
def main(folder: Path, address: str, bots: int, seed: int, think: float) -> None:
    """Let simulated people take part in this study; for the supervisor."""
    secret = simulated.take_secret()
    if not secret:
        raise InvalidParameter("Bots are started by `lore-active serve --bots`, which marks them.")
    run_bots(load_study(folder), address, bots, seed, think, stop_signal(), secret)


if __name__ == "__main__":
    main()
