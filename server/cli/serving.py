"""The commands `lore-active serve` and `lore-active demo`."""

from __future__ import annotations

import ipaddress
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from lore_active.errors import InvalidParameter
from server.auth import passwords
from server.cli import options
from server.clock import now
from server.processes import rehearsal as rehearsing
from server.processes.lifetime import set_by_signals
from server.processes.listener import CannotListen
from server.processes.supervisor import Supervisor
from server.study.samples.template import write_study


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
    "--bots",
    type=click.IntRange(0, 1000),
    default=0,
    help="Rehearse with so many simulated participants at a time, in a copy of the study that is "
    "thrown away at the end.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the bots.")
@options.think
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the rehearsal's copy, in FOLDER.",
)
@click.option("--in-study", is_flag=True, help="Let the bots into the study itself.")
def serve(
    folders: tuple[Path, ...],
    host: str,
    port: int,
    web: int,
    proxy: str,
    bots: int,
    seed: int,
    think: float,
    keep: Path | None,
    in_study: bool,
) -> None:
    """Serve the studies in these folders to participants, and learn while they answer."""
    _check_proxy(proxy)
    if not bots and (keep or in_study):
        option = "--keep" if keep else "--in-study"
        raise InvalidParameter(f"{option} is about bots: say how many with --bots.")
    if keep and in_study:
        raise InvalidParameter("--keep and --in-study exclude each other: give one of them.")
    if not bots or in_study:
        run(list(folders), host, port, web, bots, seed, think, proxy)
        return
    with rehearsing.rehearsal(list(folders), keep, now, _say) as copies:
        purpose = rehearsing.Purpose(keep.name if keep else "")
        run(copies, host, port, web, bots, seed, think, proxy, purpose)


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

    The study goes into DIR, or into a folder that is thrown away at the end. When the bots have
    finished it stays open to you.
    """
    with ExitStack() as stack:
        kept = "" if folder is None else folder.absolute().name
        if folder is None:
            _say(
                "The demonstration is thrown away at the end; `lore-active demo DIR` or "
                "`make demo DIR=…` keeps it."
            )
            folder = (
                Path(stack.enter_context(TemporaryDirectory(prefix="lore-active-"))) / "colours"
            )
        if not (folder / "study.toml").exists():
            write_study(folder, "colours", seed)
            password = passwords.generate()
            passwords.set_password(folder, password)
            _say(f"The monitor's password: {password}")
        purpose = rehearsing.Purpose(kept, demo=True)
        try:
            run([folder], "127.0.0.1", port, 1, bots, seed, think, "", purpose)
        except CannotListen:
            # A demo should run, whatever else does.
            _say(f"Port {port} is taken, so another one is used.")
            run([folder], "127.0.0.1", 0, 1, bots, seed, think, "", purpose)
        if kept:
            _say(f"The demonstration is kept in {folder}.")


def run(
    folders: list[Path],
    host: str,
    port: int,
    web: int,
    bots: int,
    seed: int,
    think: float,
    proxy: str = "",
    rehearsal: rehearsing.Purpose | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    stop = set_by_signals()
    supervisor = Supervisor(
        folders, host, port, web, bots, seed, think, _say, proxy, rehearsal=rehearsal
    )
    supervisor.run(stop)
    _say("Stopped. Every answer is stored." if rehearsal is None else "Stopped.")


def _say(message: str) -> None:
    print(message, flush=True)
