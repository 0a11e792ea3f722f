"""The commands `lore-active serve` and `lore-active demo`."""

from __future__ import annotations

import ipaddress
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import click

from lore_active.errors import InvalidParameter
from server import options, passwords
from server.launch import Supervisor
from server.listening import CannotListen
from server.template import write_study


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@options.host("Address to listen on.")
@options.port("0: any free.")
@click.option(
    "--web",
    type=click.IntRange(1, 16),
    default=2,
    show_default=True,
    help="Web processes; each keeps one core busy at most.",
)
@click.option(
    "--proxy",
    default="",
    metavar="ADDRESS",
    help="Address of a proxy in front, which is believed about where people come from and TLS.",
)
@click.option(
    "--bots", type=click.IntRange(0, 1000), default=0, help="Simulated participants at a time."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the bots.")
@options.think
def serve(
    folders: tuple[Path, ...],
    host: str,
    port: int,
    web: int,
    proxy: str,
    bots: int,
    seed: int,
    think: float,
) -> None:
    """Serve the studies in these folders to participants, and learn while they answer."""
    _check_proxy(proxy)
    run(list(folders), host, port, web, bots, seed, think, proxy)


def _check_proxy(address: str) -> None:
    if address in ("", "*"):
        return
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise InvalidParameter(
            f"--proxy is {address!r}, but must be the address that the proxy's requests come from, "
            "such as 127.0.0.1, or '*' where nobody but the proxy can reach this port."
        ) from None


@click.command()
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@options.port("0: any free.")
@click.option(
    "--bots",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="Simulated participants at a time.",
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Of the study and of the bots.")
@options.think
def demo(folder: Path | None, port: int, bots: int, seed: int, think: float) -> None:
    """Watch a study of colours that simulated people answer; take part yourself if you like.

    The study goes into DIR, or into a folder that is thrown away at the end.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = (
                Path(stack.enter_context(TemporaryDirectory(prefix="lore-active-"))) / "colours"
            )
        if not (folder / "study.toml").exists():
            write_study(folder, "colours", seed)
            password = passwords.generate()
            passwords.set_password(folder, password)
            _say(f"The monitor's password: {password}")
        try:
            run([folder], "127.0.0.1", port, 1, bots, seed, think)
        except CannotListen:
            # A demo should run, whatever else does.
            run([folder], "127.0.0.1", 0, 1, bots, seed, think)


def run(
    folders: list[Path],
    host: str,
    port: int,
    web: int,
    bots: int,
    seed: int,
    think: float,
    proxy: str = "",
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    supervisor = Supervisor(folders, host, port, web, bots, seed, think, _say, proxy)
    supervisor.run(stop)
    _say("Stopped. Every answer is stored.")


def _say(message: str) -> None:
    print(message, flush=True)
