"""What a training tells while it runs: a table that anything reads, and events for TensorBoard."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from graph2vid._files import write_text
from graph2vid.learn.features.events import EventFile

TABLE = "log.csv"
EVENTS = "tensorboard"


class Logs:
    """The logs in the folder of a training.

    Parameters
    ----------
    folder : path, optional
        None: nothing is written.
    told : int
        The rows that were already written, before a training was interrupted.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, told: int = 0) -> None:
        self._folder = None if folder is None else Path(folder)
        self._events: EventFile | None = None
        self._told = told

    def __enter__(self) -> Logs:
        if self._folder is not None:
            self._events = EventFile(self._folder / EVENTS)
        return self

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
        for row in history[self._told :]:
            for name, value in row.items():
                if self._events is not None and name != "epoch" and value is not None:
                    self._events.scalar(name, value, row["epoch"])
        self._told = len(history)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._events is not None:
            self._events.close()
