"""Named, interchangeable parts (policies, parsers, exporters, …), open to other packages by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from graph2vid.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of named parts of one kind.

    Parameters
    ----------
    kind : str
        What the parts are, in words ("drop policy"); used in messages.
    group : str
        The entry-point group in which other packages offer parts of this kind.
    home : str, optional
        The module that registers the built-in parts, imported when the table is first read. It lets a room hold the
        table of parts that rooms further on offer, without importing from them.
    """

    def __init__(self, kind: str, group: str, home: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self.home = home
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that enters its argument under ``name``."""

        def enter(part: T) -> T:
            if name in self._parts:
                raise InputError(f"{self.kind} {name!r} is registered already")
            self._parts[name] = part
            return part

        return enter

    def _offered(self) -> dict[str, Callable[[], T]]:
        return {point.name: point.load for point in entry_points(group=self.group)}

    def get(self, name: str) -> T:
        """Return the part called ``name``; an unknown name is an error that lists the known ones."""
        self._go_home()
        if name not in self._parts:
            offered = self._offered()
            if name not in offered:
                raise InputError(f"unknown {self.kind} {name!r}; known: {', '.join(self)}")
            self._parts[name] = offered[name]()
        return self._parts[name]

    def _go_home(self) -> None:
        if self.home is not None:
            import_module(self.home)

    def __iter__(self) -> Iterator[str]:
        self._go_home()
        return iter(sorted({*self._parts, *self._offered()}))

    def __contains__(self, name: object) -> bool:
        return name in set(self)
