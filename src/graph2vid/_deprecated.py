"""Old names that still work for one release, each with a DeprecationWarning that says the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, stacklevel: int = 2) -> None:
    """Warn that ``old`` is called ``new`` now; ``stacklevel`` counts from the caller of this function, as usual."""
    warnings.warn(
        f"{old} is called {new} now; the old name goes away in the next release",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def renamed(**names: str) -> Callable[[Function], Function]:
    """Return a decorator of functions and classes' methods: keyword arguments called ``old="new"`` keep working.

    Examples
    --------
    >>> @renamed(threads="workers")
    ... def count(workers=1):
    ...     return workers
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs:
                new = names[old]
                if new in kwargs:
                    raise TypeError(f"{function.__name__}() got {new!r} and its old name {old!r}: give one of them")
                warn_renamed(f"the argument {old!r} of {function.__name__}()", repr(new))
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def renamed_attributes(module: str, **names: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module in which attributes were renamed, ``old="new"``.

    ``new`` is an attribute of the same module, or a dotted path (``"graph2vid.batch.Corpus"``) where it moved.

    Examples
    --------
    >>> __getattr__ = renamed_attributes(__name__, Machine="Automaton")
    """

    def getter(name: str) -> Any:
        new = names.get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", new if "." in new else f"{module}.{new}")
        home, _, attribute = new.rpartition(".")
        return getattr(import_module(home) if home else sys.modules[module], attribute)

    return getter
