"""Readers of public dataset layouts, and a synthetic generator: all hand over one kind of :class:`Dataset`."""

from __future__ import annotations

from graph2vid.datasets import (
    captaincook4d,
    captioned,
    crosstask,
    featured,
    framewise,
    salads50,
    synthetic,
    youcook2,
)  # enter themselves
from graph2vid.datasets.crosstask import Executions, read_executions
from graph2vid.datasets.crosstask_tasks import onto_steps, read_published_flows
from graph2vid.datasets.dataset import (
    Annotation,
    Dataset,
    Embedded,
    Embeddings,
    Evidence,
    HowTo,
    Recording,
    Split,
    Task,
)
from graph2vid.datasets.ordered_texts import OrderedText, read_asynchow, read_wikihow_fg
from graph2vid.datasets.reader_tools import DATASETS, Narration, is_dataset_in, read_dataset
from graph2vid.datasets.recipe_flowgraph import ENTITY_CLASSES, Recipe, read_recipes

# What a dataset is, and the readers that hand one over.
__all__ = ["DATASETS", "Annotation", "Dataset", "Embedded", "Embeddings", "Evidence", "HowTo", "Narration"]
__all__ += [
    "Recording",
    "Split",
    "Task",
    "captaincook4d",
    "captioned",
    "crosstask",
    "featured",
    "framewise",
    "is_dataset_in",
    "read_dataset",
]
__all__ += ["salads50", "synthetic", "youcook2"]
# Texts with flow graphs or orders, and how people carry tasks out.
__all__ += ["ENTITY_CLASSES", "Executions", "OrderedText", "Recipe", "onto_steps", "read_asynchow", "read_executions"]
__all__ += ["read_published_flows", "read_recipes", "read_wikihow_fg"]
