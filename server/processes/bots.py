"""Simulated participants that use the real pages over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import click
import numpy as np

from lore_active.errors import InvalidParameter
from lore_active.questions.kinds import TRIPLET
from lore_active.simulation.observers import Observer, ObserverNoise, gaussian_space
from lore_active.types import Floats
from server.collection import simulated
from server.processes.lifetime import stop_signal
from server.study.config import LoadedStudy
from server.study.items.display import items_by_name
from server.study.items.positions import read_positions
from server.study.workspace import load_study

TRIES = 40
SIDES = ("left", "right")


class BotPage(HTMLParser):
    """The parts of a page that a bot uses: the form, its hidden fields, buttons and items."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.buttons: list[tuple[str, str]] = []
        self.anchor: str | None = None
        self.options: dict[int, str] = {}
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect forms, fields, buttons and items."""
        values = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None:
            self.action = values.get("action")
        elif tag == "input" and values.get("type") == "hidden":
            self.fields[values.get("name", "")] = values.get("value", "")
        elif tag == "textarea":
            self.fields[values.get("name", "")] = ""
        elif tag == "button":
            self.buttons.append((values.get("name", ""), values.get("value", "")))
        if "data-option" in values:
            self.options[int(values["data-option"])] = values["data-item"]
        elif "data-item" in values:
            self.anchor = values["data-item"]


class Browser:
    """A persistent connection with retries: the same request may be sent twice."""

    def __init__(self, address: str, stop: threading.Event, secret: str = "") -> None:
        self.address = address
        self._secret = secret
        self._stop = stop
        self._connection: http.client.HTTPConnection | None = None
        self.status = 0
        self.seconds = 0.0
        self.retries = 0

    def get(self, url: str) -> str:
        """Fetch a page, following redirects."""
        return self._send("GET", url, None)

    def post(self, url: str, fields: Mapping[str, str] | Sequence[tuple[str, str]]) -> str:
        """Submit a form; return the next part of the page, as a browser with htmx gets it."""
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
        raise ConnectionError(f"{url} did not respond in {TRIES} attempts.")

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
        reply_headers = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, reply_headers, text

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Bot:
    """One simulated participant, from the link to the last page."""

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
        self._kind = study.kind

    def take_part(self, label: str, stop: threading.Event) -> int | None:
        """Take part in the study; return the number of answers, or None if not admitted."""
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

    def _filled(self, page: BotPage, stop: threading.Event) -> list[tuple[str, str]]:
        fields = dict(page.fields)
        picked: list[tuple[str, str]] = []
        if page.action is not None and page.action.endswith("/answer"):
            anchor = None if page.anchor is None else self._names[page.anchor]
            options = [self._names[page.options[place]] for place in sorted(page.options)]
            # Skewed to the right, like human response times.
            seconds = self._think * float(self._rng.lognormal(0.0, 0.3))
            onset, begun = 1000 * time.time(), time.perf_counter()
            stop.wait(seconds)
            rt = round(1000 * (time.perf_counter() - begun), 1)
            places = self._places(anchor, options)
            if self._kind == TRIPLET:
                picked = [("side", SIDES[places[0]])]
            else:
                picked = [("chosen", str(place)) for place in places]
            # Measured as the pages do; shorter times would be flagged as forged.
            fields["timings"] = json.dumps(
                {"rt_ms": rt, "onset_at": onset, "response_at": onset + rt}
            )
        elif page.buttons and page.buttons[0][0]:
            name, value = page.buttons[0]
            fields[name] = value
        return [*fields.items(), *picked]

    def _places(self, anchor: int | None, options: list[int]) -> list[int]:
        """Choose options by their positions: the known answer, lapses aside, else the observer's.

        Of two equal options in an odd-one-out question, either may be meant.
        """
        chosen = list(self._observer.choose(self._kind, anchor, options))
        known = self._known(anchor, options)
        if known is not None:
            rest = self._rng.permutation(options).tolist()
            if self._rng.random() >= self._lapse:
                rest = [known, *(item for item in (*chosen, *rest) if item != known)]
            chosen = list(dict.fromkeys(rest))[: self._kind.pick]
        return [options.index(item) for item in chosen]

    def _known(self, anchor: int | None, options: list[int]) -> int | None:
        """The known answer of a catch question; None of any other."""
        if anchor in options:
            return anchor
        for item in options:
            if anchor is None and len(set(options)) == 2 and options.count(item) == 1:
                return item
        for catch in self._study.catches:
            if anchor is None and {*options} == {catch.anchor, catch.nearer, catch.farther}:
                return catch.farther
            if anchor == catch.anchor and {catch.nearer, catch.farther} <= {*options}:
                return catch.nearer
        return None


def space_of(study: LoadedStudy, seed: int) -> Floats:
    """Return the bots' coordinates of the items: the study's, or random in three dimensions."""
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
    """Keep `count` bots taking part, each followed by a new one, until none is admitted any more.

    With the server's secret they are marked as simulated; without it they come as participants.
    """
    space, names = space_of(study, seed), items_by_name(study)
    settings = study.settings.bots
    observer_noise = ObserverNoise(noise=settings.noise, lapse=settings.lapse)
    # Bots of another run are other participants, even in the same study.
    run = hashlib.sha256(secret.encode()).hexdigest()[:6] if secret else str(seed)
    turned_away: set[int] = set()

    def keep_taking_part(place: int) -> None:
        participant = 0
        while not stop.is_set():
            bot_seed = int(np.random.SeedSequence([seed, place, participant]).generate_state(1)[0])
            browser = Browser(address, stop, secret)
            bot = Bot(
                study, names, Observer(space, observer_noise, bot_seed), browser, think, bot_seed
            )
            try:
                if bot.take_part(f"bot-{run}-{place + 1}-{participant + 1}", stop) is None:
                    if browser.status == 403:
                        raise PermissionError(f"{address} does not accept these bots.")
                    # The study is full or stopped; it may be reopened.
                    turned_away.add(place)
                    stop.wait(2.0)
                    continue
            except (InterruptedError, ConnectionError):
                stop.wait(1.0)
                continue
            finally:
                browser.close()
            participant += 1

    threads = [
        threading.Thread(target=keep_taking_part, args=(place,), daemon=True)
        for place in range(count)
    ]
    for thread in threads:
        thread.start()
    reported = False
    while not stop.wait(0.5):
        if len(turned_away) == count and not reported:
            reported = True
            print(
                f"{study.name}: the bots have finished. The study remains open to participants.",
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
    """Let simulated participants take part in this study; started by the supervisor."""
    secret = simulated.take_secret()
    if not secret:
        raise InvalidParameter("Bots are started by `lore-active serve --bots`, which marks them.")
    run_bots(load_study(folder), address, bots, seed, think, stop_signal(), secret)


if __name__ == "__main__":
    main()
