"""Aligning a compiled procedure with a video: `Problem`, and one line for each of its answers.

Other packages enter here; the module ``alignment_plot`` is loaded by who draws.
"""

from graph2vid.alignment.alignment_result import BACKGROUND, Alignment, ClipSegment, Posterior
from graph2vid.alignment.automata import AutomatonProblem
from graph2vid.alignment.backends import SMOOTHINGS, Resources, SoftCost, native, procedure, soft_costs
from graph2vid.alignment.calls import align, k_best, margins, posterior
from graph2vid.alignment.clip_costs import (
    LONG,
    ClipCosts,
    Constraint,
    Kind,
    check_costs,
    check_gamma,
    gamma_bounds,
    widened,
)
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.many import Extended, align_many, solve_side_by_side
from graph2vid.alignment.order_trust import order_margin, order_trust
from graph2vid.alignment.problem import METHODS, Problem
from graph2vid.alignment.stream import Stream

# What is asked, and the answers.
__all__ = ["BACKGROUND", "METHODS", "Alignment", "ClipSegment", "Constraint", "Durations", "Kind", "Posterior"]
__all__ += ["Problem", "Stream", "align", "align_many", "k_best", "margins", "posterior"]
# What losses, batches and benchmarks build on.
__all__ += [
    "LONG",
    "SMOOTHINGS",
    "AutomatonProblem",
    "ClipCosts",
    "SoftCost",
    "check_costs",
    "check_gamma",
    "gamma_bounds",
    "native",
]
__all__ += [
    "Extended",
    "Resources",
    "order_margin",
    "order_trust",
    "procedure",
    "soft_costs",
    "solve_side_by_side",
    "widened",
]
