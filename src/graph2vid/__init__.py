"""graph2vid: say when each step of a procedure happens in a video, in whichever legal order the video shows.

It realises, and extends, *Graph2Vid: Flow graph to Video Grounding for Weakly-supervised Multi-Step Localization* by
N. Dvornik, I. Hadji, H. Pham, D. Bhatt, B. Martinez, A. Fazly and A. D. Jepson (ECCV 2022,
https://arxiv.org/abs/2210.04996).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

# Name → module that holds it. Nothing is imported before it is used, so that `import graph2vid` stays instant.
_PUBLIC = {
    "Alignment": "graph2vid.alignment",
    "Constraint": "graph2vid.alignment",
    "FlowGraph": "graph2vid.flow",
    "Graph2VidError": "graph2vid.errors",
    "Grounding": "graph2vid.grounding",
    "Posterior": "graph2vid.alignment",
    "Problem": "graph2vid.alignment",
    "Procedure": "graph2vid.text",
    "Step": "graph2vid.flow",
    "Stream": "graph2vid.alignment",
    "TSortGraph": "graph2vid.tsort",
    "align": "graph2vid.alignment",
    "align_many": "graph2vid.alignment",
    "ground": "graph2vid.grounding",
    "k_best": "graph2vid.alignment",
    "parse": "graph2vid.text",
    "posterior": "graph2vid.alignment",
    "read_procedure": "graph2vid.text",
}

if TYPE_CHECKING:
    from graph2vid.alignment import (
        Alignment,
        Constraint,
        Posterior,
        Problem,
        Stream,
        align,
        align_many,
        k_best,
        posterior,
    )
    from graph2vid.errors import Graph2VidError
    from graph2vid.flow import FlowGraph, Step
    from graph2vid.grounding import Grounding, ground
    from graph2vid.text import Procedure, parse, read_procedure
    from graph2vid.tsort import TSortGraph

__all__ = [
    "Alignment",
    "Constraint",
    "FlowGraph",
    "Graph2VidError",
    "Grounding",
    "Posterior",
    "Problem",
    "Procedure",
    "Step",
    "Stream",
    "TSortGraph",
    "__version__",
    "align",
    "align_many",
    "ground",
    "k_best",
    "parse",
    "posterior",
    "read_procedure",
]


def __getattr__(name: str) -> Any:
    if name == "learn":
        return import_module("graph2vid.learn")
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'graph2vid' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    dunder = [name for name in globals() if name.startswith("__")]
    return sorted({*__all__, "learn", *dunder})
