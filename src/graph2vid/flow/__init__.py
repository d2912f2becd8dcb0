"""Flow graphs: steps and what must come before what, their formats and drawings.

Other packages enter here; the modules ``svg``, ``flow_drawing`` and ``flow_plot``, which hold what their drawings
and plots share, are loaded by who draws.
"""

from __future__ import annotations

from graph2vid.flow.colours import BACKGROUND_COLOUR, PALETTE, colour_of, hatch_of, ink_on
from graph2vid.flow.execution_model import BOOTSTRAP, Execution, ExecutionModel, log_likelihood, mine_executions
from graph2vid.flow.expected_order import as_written, certainly, surest
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.formats import KIND as FLOW_FORMAT
from graph2vid.flow.formats import known_suffix
from graph2vid.flow.layout import Box, Layout, lay_out, stages
from graph2vid.flow.messages import counted, quoted, refuse_large, unknown_step
from graph2vid.flow.mine import Mined, add_soft_precedence, mine_precedences
from graph2vid.flow.order import bits, mask_of, reduction_edges
from graph2vid.flow.steps import Step
from graph2vid.flow.terminal import plain
from graph2vid.flow.text_format import is_text_notation
from graph2vid.flow.validate import findings

# Flow graphs, their formats and how they are found.
__all__ = ["FLOW_FORMAT", "FlowGraph", "Step", "add_soft_precedence", "as_written", "bits", "certainly", "findings"]
__all__ += ["is_text_notation", "known_suffix", "mask_of", "reduction_edges", "surest"]
# How they are mined.
__all__ += [
    "BOOTSTRAP",
    "Execution",
    "ExecutionModel",
    "Mined",
    "log_likelihood",
    "mine_executions",
    "mine_precedences",
]
# How they are drawn and spoken of.
__all__ += ["BACKGROUND_COLOUR", "PALETTE", "Box", "Layout", "colour_of", "counted", "hatch_of", "ink_on", "lay_out"]
__all__ += ["plain", "quoted", "refuse_large", "stages", "unknown_step"]
