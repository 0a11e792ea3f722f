"""The listening socket: opened once, and closed so that no accepted connection is dropped."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys

from lore_active.errors import LoreError
from server.children import BACKLOG

SO_ATTACH_FILTER = 26
RETURN = 0x06  # the one instruction of the filter: how many bytes of a packet pass


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
    """Keep new connections out of the accept queue; those in it can still be accepted.

    Closing a listening socket resets every connection in its queue, also those that arrived since
    the last `accept`. On Linux a filter that passes no packet keeps new ones out beforehand: their
    clients try again by themselves, and are refused once the socket is closed.
    """
    if sys.platform != "linux":
        return
    program = ctypes.create_string_buffer(struct.pack("=HBBI", RETURN, 0, 0, 0))
    # A number of instructions, and where they are, aligned as the system's compiler does.
    described = struct.pack("@HP", 1, ctypes.addressof(program))
    # Where it is not allowed, a connection may be reset at the last moment, as on other systems.
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, described)
