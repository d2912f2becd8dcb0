"""What an alignment says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph

Labels = npt.NDArray[np.int64]

BACKGROUND = -1
"""The label of a clip that shows no step."""


@dataclass(frozen=True, slots=True, order=True)
class ClipSegment:
    """An unbroken run of clips ``start`` … ``stop - 1`` that show one step."""

    start: int
    stop: int
    step: int


@dataclass(frozen=True, eq=False)
class Alignment:
    """The cheapest way to explain a video by a procedure.

    Attributes
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    cost : float
        The sum of all match, drop and skip costs.
    clip_labels : int64 [N] or None
        See :attr:`labels`; None when only the cost was asked for.
    gap : float
        How far the cost may lie above the optimum: 0, since the answer is exact.
    options : mapping
        How the answer was found: method, backend, dtype, contiguous, …
    """

    flow: FlowGraph
    cost: float
    clip_labels: Labels | None
    gap: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> Labels:
        """int64 [N]: for each clip the index of its step, or -1 for background."""
        if self.clip_labels is None:
            raise InputError("only the cost was asked for (cost_only=True): there are no labels")
        return self.clip_labels

    @cached_property
    def segments(self) -> tuple[ClipSegment, ...]:
        """The runs of clips with one step, in the order of the video."""
        edges = np.flatnonzero(np.diff(self.labels)) + 1
        bounds = [0, *edges.tolist(), len(self.labels)]
        steps = self.labels[bounds[:-1]].tolist()
        return tuple(
            ClipSegment(start, stop, step)
            for start, stop, step in zip(bounds[:-1], bounds[1:], steps, strict=True)
            if step != BACKGROUND
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The steps shown, in the order in which they begin."""
        return tuple(dict.fromkeys(segment.step for segment in self.segments))

    @cached_property
    def skipped(self) -> tuple[int, ...]:
        """The steps that are not shown."""
        shown = set(self.order)
        return tuple(step for step in range(len(self.flow)) if step not in shown)

    def __repr__(self) -> str:
        shown = "" if self.clip_labels is None else f", {len(self.order)} of {len(self.flow)} steps shown"
        return f"Alignment(cost={self.cost:.6g}{shown})"


@dataclass(frozen=True, eq=False)
class Posterior:
    """How probable each label of each clip is, over all alignments weighted by exp(-cost / gamma).

    Attributes
    ----------
    flow : FlowGraph
        The procedure, of K steps.
    cost : float
        The softmin over all alignments, -gamma · log Σ exp(-cost / gamma).
    probability : float64 [K+1, N]
        Rows 0 … K-1 are the steps, row K is background; each column sums to 1.
    options : mapping
        How the answer was found.
    """

    flow: FlowGraph
    cost: float
    probability: npt.NDArray[np.float64]
    options: Mapping[str, Any] = field(default_factory=dict)

    def confidence(self, segment: ClipSegment) -> float:
        """Mean posterior probability of a segment's step over its clips."""
        return float(self.probability[segment.step, segment.start : segment.stop].mean())

    def __repr__(self) -> str:
        steps, clips = self.probability.shape
        return f"Posterior(cost={self.cost:.6g}, {steps - 1} steps, {clips} clips)"
