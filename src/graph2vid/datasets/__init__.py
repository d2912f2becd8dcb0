"""Readers of public dataset layouts, and a synthetic generator: all hand over one kind of :class:`Dataset`."""

from __future__ import annotations

from graph2vid.datasets import (  # they enter themselves
    captaincook4d,
    captioned,
    crosstask,
    salads50,
    synthetic,
    youcook2,
)
from graph2vid.datasets.dataset import Annotation, Dataset, Embedded, Embeddings, Evidence, Recording, Split, Task
from graph2vid.datasets.published_flows import read_published_flows
from graph2vid.datasets.reader_tools import DATASETS

__all__ = [
    "DATASETS",
    "Annotation",
    "Dataset",
    "Embedded",
    "Embeddings",
    "Evidence",
    "Recording",
    "Split",
    "Task",
    "captaincook4d",
    "captioned",
    "crosstask",
    "read_published_flows",
    "salads50",
    "synthetic",
    "youcook2",
]
