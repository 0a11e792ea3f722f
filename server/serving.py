"""The command `lore-active serve`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import click

from server.launch import Supervisor


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free."
)
@click.option(
    "--bots", type=click.IntRange(0, 1000), default=0, help="Simulated participants at a time."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the bots.")
@click.option(
    "--think",
    type=click.FloatRange(0.0),
    default=1.0,
    show_default=True,
    help="Seconds a bot takes.",
)
def serve(
    folders: tuple[Path, ...], host: str, port: int, bots: int, seed: int, think: float
) -> None:
    """Serve the studies in these folders to participants, and learn while they answer."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    supervisor = Supervisor(list(folders), host, port, bots, seed, think, _say)
    supervisor.run(stop)
    _say("Stopped. Every answer is stored.")


def _say(message: str) -> None:
    print(message, flush=True)
