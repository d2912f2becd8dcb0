"""Named, interchangeable parts (policies, parsers, exporters, …), open to other packages by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        The entry-point group in which packages offer parts of this kind: an entry point names the part, or a module
        that registers it when it is imported.
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = group
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
        if name not in self._parts:
            offered = self._offered()
            if name not in offered:
                raise InputError(f"unknown {self.kind} {name!r}; known: {', '.join(self)}")
            self._parts.setdefault(name, offered[name]())
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._parts, *self._offered()}))

    def __contains__(self, name: object) -> bool:
        return name in set(self)
