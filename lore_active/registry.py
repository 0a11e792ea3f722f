"""Registries of selectors, stopping rules and export formats, by name.

An entry that is registered is available everywhere: as a choice in study.toml and on the command
line, in the reference, and in the methods section of the report. Another distribution adds its own
with an entry point in the group `lore_active.plugins` that names a module; importing that module
registers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from lore_active.errors import InvalidParameter

Made = TypeVar("Made")
PLUGINS = "lore_active.plugins"


@dataclass(frozen=True)
class Entry(Generic[Made]):
    """An implementation that can be selected by its name.

    Parameters
    ----------
    name
        Name in study.toml and on the command line.
    description
        One sentence for the reference.
    make
        A callable that makes it, or its location ("module:name"), which is imported on first use.
    methods
        Text for the methods section of a paper: a clause, without a full stop.
    references
        References that this text cites, in full.
    """

    name: str
    description: str
    make: Callable[..., Made] | str
    methods: str = ""
    references: tuple[str, ...] = ()


class Registry(Generic[Made]):
    """Entries by name, in the order in which they were registered.

    Examples
    --------
    >>> colours: Registry[str] = Registry("colour")
    >>> colours.register(Entry("red", "The colour of blood.", lambda: "#f00"))
    >>> colours.make("red")
    '#f00'
    >>> colours.make("blue")
    Traceback (most recent call last):
        ...
    lore_active.errors.InvalidParameter: colour is 'blue', but must be one of red.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, Entry[Made]] = {}

    def register(self, entry: Entry[Made]) -> None:
        """Add an entry; its name must be new."""
        if entry.name in self._entries:
            raise InvalidParameter(f"There is a {self.what} named {entry.name!r} already.")
        self._entries[entry.name] = entry

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __getitem__(self, name: str) -> Entry[Made]:
        if name not in self._entries:
            raise InvalidParameter(
                f"{self.what} is {name!r}, but must be one of {', '.join(self._entries)}."
            )
        return self._entries[name]

    def make(self, name: str, /, **settings: Any) -> Made:
        """Make the implementation of that name with these settings."""
        return self.maker(name)(**settings)

    def maker(self, name: str) -> Callable[..., Made]:
        """Return the class or function that makes it, imported on first use."""
        make = self[name].make
        if isinstance(make, str):
            module, _, attribute = make.partition(":")
            imported: Callable[..., Made] = getattr(import_module(module), attribute)
            return imported
        return make


@cache
def load_plugins() -> None:
    """Import the plugins of other distributions, once at the start of each process."""
    for point in entry_points(group=PLUGINS):
        point.load()
