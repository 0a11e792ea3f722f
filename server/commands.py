"""The `lore-active` command with all that it can do: the library's commands and the server's."""

from __future__ import annotations

from lore_active.cli import main

__all__ = ["main"]
