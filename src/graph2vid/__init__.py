"""graph2vid: say when each step of a procedure happens in a video, in whichever legal order the video shows.

It realises, and extends, *Graph2Vid: Flow graph to Video Grounding for Weakly-supervised Multi-Step Localization* by
N. Dvornik, I. Hadji, H. Pham, D. Bhatt, B. Martinez, A. Fazly and A. D. Jepson (ECCV 2022,
https://arxiv.org/abs/2210.04996).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

# Libraries that report on their users read these when they are loaded, which is later. A user's own setting holds.
_REPORTS_NOTHING = {
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime; its disable_telemetry_events() comes too late for the files it writes
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub, hf_xet and transformers, when they download a model
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # transformers; gives a service a model's name and the user's token
    "RAY_USAGE_STATS_ENABLED": "0",
}
for _name, _value in _REPORTS_NOTHING.items():
    os.environ.setdefault(_name, _value)

if TYPE_CHECKING:
    from graph2vid.alignment import Alignment as Alignment
    from graph2vid.alignment import Constraint as Constraint
    from graph2vid.alignment import Posterior as Posterior
    from graph2vid.alignment import Problem as Problem
    from graph2vid.alignment import Stream as Stream
    from graph2vid.alignment import align as align
    from graph2vid.alignment import align_many as align_many
    from graph2vid.alignment import k_best as k_best
    from graph2vid.alignment import posterior as posterior
    from graph2vid.errors import Graph2VidError as Graph2VidError
    from graph2vid.flow import FlowGraph as FlowGraph
    from graph2vid.flow import Step as Step
    from graph2vid.grounding import Grounding as Grounding
    from graph2vid.grounding import adapt as adapt
    from graph2vid.grounding import ground as ground
    from graph2vid.text import Procedure as Procedure
    from graph2vid.text import parse as parse
    from graph2vid.text import read_procedure as read_procedure
    from graph2vid.tsort import TSortGraph as TSortGraph

# Package → what it offers here. Nothing is imported before it is used, so that `import graph2vid` stays instant.
_ALIGNMENT = "Alignment Constraint Posterior Problem Stream align align_many k_best posterior"
_PUBLIC = {
    **dict.fromkeys(_ALIGNMENT.split(), "graph2vid.alignment"),
    **dict.fromkeys(("FlowGraph", "Step"), "graph2vid.flow"),
    **dict.fromkeys(("Grounding", "adapt", "ground"), "graph2vid.grounding"),
    **dict.fromkeys(("Procedure", "parse", "read_procedure"), "graph2vid.text"),
    "Graph2VidError": "graph2vid.errors",
    "TSortGraph": "graph2vid.tsort",
}
__all__ = sorted([*_PUBLIC, "__version__"])


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
