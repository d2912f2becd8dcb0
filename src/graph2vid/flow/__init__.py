"""Flow graphs: steps and what must come before what, their formats and drawings."""

from __future__ import annotations

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.steps import Step

__all__ = ["FlowGraph", "Step"]
