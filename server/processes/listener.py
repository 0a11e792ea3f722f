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
# A filter for packets, as Linux reads it: (code, jump if true, jump if false, value) each.
# Byte 13 of a TCP header holds its flags; packets with the second one ask for a new connection.
NO_NEW_CONNECTIONS = (
    (0x30, 0, 0, 13),
    (0x45, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)


class CannotListen(LoreError):
    """The address is taken or not ours."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; CannotListen if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. "
            "Choose another with --port (0: any free one)."
        ) from error


def stop_new_connections(listener: socket.socket) -> None:
    """Keep new connections out of the accept queue; those begun before can still be accepted.

    Closing a listening socket resets every connection in its queue, also those that arrived since
    the last `accept`. On Linux a filter keeps new ones out beforehand: their clients try again by
    themselves, and are refused once the socket is closed. Connections that a client has begun to
    make pass it, since that client already takes them for made.
    """
    if sys.platform != "linux":
        return
    packed = b"".join(struct.pack("=HBBI", *one) for one in NO_NEW_CONNECTIONS)
    program = ctypes.create_string_buffer(packed)
    # A number of instructions, and where they are, aligned as the system's compiler does.
    described = struct.pack("@HP", len(NO_NEW_CONNECTIONS), ctypes.addressof(program))
    # Where it is not allowed, a connection may be reset at the last moment, as on other systems.
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, described)
