"""The listening socket: opened once, and closed so that no accepted connection is dropped."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys

from lore_active.errors import LoreError
from server.processes.lifetime import BACKLOG

SO_ATTACH_FILTER = 26
# A packet filter (classic BPF): (code, jump if true, jump if false, value) each.
# A packet filter (classic BPF): (code, jump if true, jump if false, value) per instruction.
NO_NEW_CONNECTIONS = (
    (0x30, 0, 0, 13),
    (0x45, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)


class CannotListen(LoreError):
    """The address is in use or does not belong to this machine."""


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; raise CannotListen if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. "
            "Choose another port with --port (0 picks a free one)."
        ) from error


def stop_new_connections(listener: socket.socket) -> None:
    """Keep new connections out of the accept queue; connections under way can still be accepted.

    Closing a listening socket resets every connection in its queue, including those that arrived
    since the last `accept`. On Linux a filter keeps new ones out beforehand: their clients retry by
    themselves, and are refused once the socket is closed. The filter lets the last packet of a
    handshake pass, since its client already considers the connection established.
    """
    if sys.platform != "linux":
        return
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in NO_NEW_CONNECTIONS)
    program = ctypes.create_string_buffer(packed)
    # Number of instructions and their address, with native alignment.
    described = struct.pack("@HP", len(NO_NEW_CONNECTIONS), ctypes.addressof(program))
    # Without permission, a connection may be reset at the last moment, as on other systems.
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, described)
