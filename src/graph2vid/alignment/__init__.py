"""Aligning a compiled procedure with a video: `Problem`, and one line for each of its answers.

Other packages enter here; the module ``alignment_plot`` is loaded by who draws.
"""

from graph2vid.alignment.alignment_result import BACKGROUND, Alignment, ClipSegment, Posterior
from graph2vid.alignment.backends import SMOOTHINGS, SoftCost, native, procedure, soft_costs
from graph2vid.alignment.clip_costs import LONG, ClipCosts, Constraint, Kind, check_gamma, gamma_bounds, widened
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.many import align_many
from graph2vid.alignment.problem import METHODS, Problem, align, k_best, margins, posterior
from graph2vid.alignment.stream import Stream

__all__ = [
    "BACKGROUND",
    "LONG",
    "METHODS",
    "SMOOTHINGS",
    "Alignment",
    "ClipCosts",
    "ClipSegment",
    "Constraint",
    "Durations",
    "Kind",
    "Posterior",
    "Problem",
    "SoftCost",
    "Stream",
    "align",
    "align_many",
    "check_gamma",
    "gamma_bounds",
    "k_best",
    "margins",
    "native",
    "posterior",
    "procedure",
    "soft_costs",
    "widened",
]
