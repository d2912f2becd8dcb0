"""Aligning a compiled procedure with a video: one façade over the NumPy reference and the compiled kernels."""

from graph2vid.alignment.constraints import Constraint
from graph2vid.alignment.facade import align, align_many, posterior
from graph2vid.alignment.result import BACKGROUND, Alignment, ClipSegment, Posterior

__all__ = [
    "BACKGROUND",
    "Alignment",
    "ClipSegment",
    "Constraint",
    "Posterior",
    "align",
    "align_many",
    "posterior",
]
