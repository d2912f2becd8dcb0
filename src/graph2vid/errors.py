"""The family of errors that graph2vid raises on purpose.

A message says what was wrong, where (file, line, step), and what to do. The command line prints it in one line and
exits with status 2.
"""

from __future__ import annotations


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
    """An optional package is needed for this and is not installed; the message names the extra."""
