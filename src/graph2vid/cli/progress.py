"""How far long work is: a bar on a terminal, from the first moment; elsewhere a line now and then. Always on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

Tell: TypeAlias = Callable[..., None]
"""Called as (what is done, done, total); of what nobody knows the length, as (what is done)."""

SECONDS = 20.0
"""Between two lines, where there is no terminal."""


@contextmanager
def progress(what: str) -> Iterator[Tell]:
    """Show that something is going on, and yield what tells how far it is.

    Parameters
    ----------
    what : str
        What is done first, until another is told of.
    """
    from rich.console import Console

    stderr = Console(stderr=True)
    with _bar(stderr, what) if stderr.is_terminal else _lines(what) as tell:
        yield tell


@contextmanager
def _bar(console: Console, what: str) -> Iterator[Tell]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    columns = SpinnerColumn(), words, BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(what: str, done: float = 0.0, total: float | None = None) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield tell


@contextmanager
def _lines(what: str) -> Iterator[Tell]:
    """Print a line now and then, from a thread: what is going on may tell nothing for long."""
    began = time.monotonic()
    over = threading.Event()
    state: tuple[str, float, float | None] = what, 0.0, None

    def tell(what: str, done: float = 0.0, total: float | None = None) -> None:
        nonlocal state
        state = what, done, total

    def speak() -> None:
        while not over.wait(SECONDS):
            what, done, total = state
            share = f", {done / total:.0%}" if total else ""
            minutes, seconds = divmod(round(time.monotonic() - began), 60)
            print(f"graph2vid: {what}{share}, {minutes}:{seconds:02d} so far", file=sys.stderr, flush=True)

    thread = threading.Thread(target=speak, name="progress", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join(1.0)
