"""Readers of public dataset layouts, and a synthetic generator: all hand over one kind of :class:`Dataset`."""

from __future__ import annotations

from graph2vid.datasets.model import Annotation, Dataset, Evidence, Recording, Split, Task

__all__ = ["Annotation", "Dataset", "Evidence", "Recording", "Split", "Task"]
