"""Aligning a compiled procedure with a video: one façade over the NumPy reference and the compiled kernels."""

from graph2vid.alignment.alignment_result import BACKGROUND, Alignment, ClipSegment, Posterior
from graph2vid.alignment.certainty import margins
from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.durations import Durations
from graph2vid.alignment.facade import align, posterior
from graph2vid.alignment.many import align_many
from graph2vid.alignment.orders import k_best
from graph2vid.alignment.stream import Stream

__all__ = [
    "BACKGROUND",
    "Alignment",
    "ClipSegment",
    "Constraint",
    "Durations",
    "Posterior",
    "Stream",
    "align",
    "align_many",
    "k_best",
    "margins",
    "posterior",
]
