"""The family of errors that graph2vid raises on purpose.

A message says what was wrong, where (file, line, step), and what to do. The command line prints it in one line and
exits with status 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def how_to_install(extra: str) -> str:
    """Return how to install graph2vid with an extra, or with several (``"text,media"``): the hint that all errors give.

    graph2vid is installed from a clone of its repository or from a wheel; no package index has it.
    """
    return f"pip install '.[{extra}]' in a clone of graph2vid, or pip install 'graph2vid-….whl[{extra}]'"


class Graph2VidError(Exception):
    """Base of every error that graph2vid raises on purpose."""


class InputError(Graph2VidError, ValueError):
    """A value, shape or option handed in is not usable (NaN, wrong shape, unknown name, …)."""


class GraphError(InputError):
    """A flow graph is not one: a cycle, an unknown or doubled step, a self loop, nothing in it."""


class FormatError(InputError):
    """A file is not what it should be: malformed, of another kind, or of a newer format version."""


class InfeasibleError(Graph2VidError):
    """No finite alignment exists; the message says why."""


class TooLargeError(Graph2VidError):
    """The exact answer would need more memory or states than the stated limit."""


class MissingDependencyError(Graph2VidError, ImportError):
    """An optional package is needed for this and is not installed.

    Parameters
    ----------
    message : str
        What needs which package.
    extra : str
        The extra of graph2vid that brings the package; the message then ends with how to install it.
    """

    def __init__(self, message: str, *, extra: str = "") -> None:
        super().__init__(f"{message}: {how_to_install(extra)}" if extra else message)


@contextmanager
def needing(message: str, extra: str) -> Iterator[None]:
    """Import packages in this context: where one is not installed, a :class:`MissingDependencyError` says it."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(message, extra=extra) from error
