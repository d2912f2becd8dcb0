"""The logs of a training: a table that anything reads and, where tensorboard is installed, its events."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graph2vid._files import write_text

TABLE = "log.csv"
EVENTS = "tensorboard"


class Logs:
    """The logs in the folder of a training.

    Parameters
    ----------
    folder : path, optional
        None: nothing is written.
    written : int
        The rows that were already written, before a training was interrupted.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, written: int = 0) -> None:
        self._folder = None if folder is None else Path(folder)
        self._events = None if self._folder is None else _event_writer(self._folder / EVENTS)
        self._written = written

    def write(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write all rows so far: the table whole, the events of those that are new."""
        if self._folder is None:
            return
        text = io.StringIO()
        columns = list(dict.fromkeys(name for row in history for name in row))
        table = csv.DictWriter(text, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(history)
        write_text(self._folder / TABLE, text.getvalue())
        if self._events is not None:
            for row in history[self._written :]:
                for name, value in row.items():
                    if name != "epoch" and value is not None:
                        self._events.add_scalar(name, value, row["epoch"])
            self._events.flush()
        self._written = len(history)

    def close(self) -> None:
        """Close the file of events."""
        if self._events is not None:
            self._events.close()


def _event_writer(folder: Path) -> Any:
    """Return what writes events for TensorBoard; None where its package is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
