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
from server.processes import logs
from server.processes import rehearsal as rehearsing
from server.processes.lifetime import set_by_signals
from server.processes.listener import CannotListen
from server.processes.supervisor import Supervisor
from server.study.samples.template import write_study


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@options.host("Address to listen on.")
@options.port("Port to listen on; 0 picks a free one.")
@click.option(
    "--web",
    type=click.IntRange(1, 16),
    default=2,
    show_default=True,
    help="Number of web processes; each uses at most one core.",
)
@click.option(
    "--proxy",
    default="",
    metavar="ADDRESS",
    help="Address of a reverse proxy whose headers on client address and TLS are trusted.",
)
@click.option(
    "--bots",
    type=click.IntRange(0, 1000),
    default=0,
    help="Rehearse with this many simulated participants at a time, in a copy of the study that is "
    "deleted afterwards.",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Random seed of the bots.")
@options.think
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the copy used for the rehearsal, in FOLDER.",
)
@click.option("--in-study", is_flag=True, help="Let the bots take part in the study itself.")
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    default=logs.DEFAULT,
    show_default=True,
    help="Least severe messages in the logs of the processes, on standard error.",
)
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
    log_level: str,
) -> None:
    """Serve studies to participants and update their models while answers come in."""
    _check_proxy(proxy)
    logs.pass_on(log_level)
    if not bots and (keep or in_study):
        option = "--keep" if keep else "--in-study"
        raise InvalidParameter(f"{option} requires --bots.")
    if keep and in_study:
        raise InvalidParameter("--keep and --in-study cannot be used together.")
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
            "such as 127.0.0.1, or '*' if only the proxy can reach this port."
        ) from None


@click.command()
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@options.port("Port to listen on; 0 picks a free one.")
@click.option(
    "--bots",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="Simulated participants at a time.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, help="Random seed of the study and the bots."
)
@options.think
def demo(folder: Path | None, port: int, bots: int, seed: int, think: float) -> None:
    """Run a demo study of colours with simulated participants; you can take part, too.

    The study is created in DIR, or in a temporary folder that is deleted afterwards. It stays open
    when the bots have finished.
    """
    with ExitStack() as stack:
        kept = "" if folder is None else folder.absolute().name
        if folder is None:
            _say(
                "The demo study is deleted afterwards; to keep it, use `lore-active demo DIR` or "
                "`make demo DIR=…`."
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
            # A demo should start even if the default port is in use.
            _say(f"Port {port} is in use; using another one.")
            run([folder], "127.0.0.1", 0, 1, bots, seed, think, "", purpose)
        if kept:
            _say(f"The demo study was kept in {folder}.")


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
    _say("Stopped. All answers are stored." if rehearsal is None else "Stopped.")


def _say(message: str) -> None:
    print(message, flush=True)
