"""Tables of figures in the terminal, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_FOLDED = 16  # characters that a column of words keeps, at the least


def show_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> None:
    """Print a table; one that is too wide is cut into several, each with the first column.

    Parameters
    ----------
    console : Console
        Where to print.
    headings : sequence of str
        What stands above the columns.
    rows : sequence of sequences of str
        The cells.
    words : int
        How many of the first columns hold words, which may be folded (but for the first); the others hold numbers.
    """
    from rich.table import Table

    for part in _parts(headings, rows, words, console.width):
        shown = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 1))
        for at in part:
            shown.add_column(
                headings[at], justify="left" if at < words else "right", overflow="fold", no_wrap=not 0 < at < words
            )
        for row in rows:
            shown.add_row(*(row[at].replace("[", r"\[") for at in part))
        console.print(shown)


def _parts(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int, width: int) -> list[list[int]]:
    """Return the columns of each part."""
    sizes = [max(len(cell) for cell in (heading, *(row[at] for row in rows))) for at, heading in enumerate(headings)]
    sizes = [min(size, _FOLDED) if 0 < at < words else size for at, size in enumerate(sizes)]
    parts: list[list[int]] = [[0]]
    for at in range(1, len(sizes)):
        if sum(sizes[i] + 2 for i in [*parts[-1], at]) > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    return parts
