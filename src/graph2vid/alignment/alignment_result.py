"""What an alignment says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels = npt.NDArray[np.int64]

BACKGROUND = -1
"""The label of a clip that shows no step."""


def runs_of(labels: Labels) -> Iterator[tuple[int, int, int]]:
    """Return the unbroken sequences of one label, background too: label, first clip, clip after the last."""
    bounds = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return zip(labels[bounds[:-1]].tolist(), bounds[:-1], bounds[1:], strict=True)


@dataclass(frozen=True, slots=True, order=True)
class ClipSegment:
    """Clips ``start`` … ``stop - 1`` that show one step."""

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
        How far the cost may lie above the optimum; 0: the answer is exact.
    options : mapping
        How the answer was found: method, backend, dtype, contiguous, …
    """

    flow: FlowGraph
    cost: float
    clip_labels: Labels | None
    gap: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lower_bound(self) -> float:
        """What every alignment costs at the least; the cost itself where the answer is exact."""
        return self.cost - self.gap

    @property
    def labels(self) -> Labels:
        """int64 [N]: for each clip the index of its step, or -1 for background."""
        if self.clip_labels is None:
            raise InputError("only the cost was asked for (cost_only=True): there are no labels")
        return self.clip_labels

    @cached_property
    def segments(self) -> tuple[ClipSegment, ...]:
        """The unbroken sequences of clips that show one step, in the order of the video."""
        return tuple(ClipSegment(start, stop, step) for step, start, stop in runs_of(self.labels) if step != BACKGROUND)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The steps shown, in the order in which they begin."""
        return tuple(dict.fromkeys(segment.step for segment in self.segments))

    @cached_property
    def skipped(self) -> tuple[int, ...]:
        """The steps that are not shown."""
        shown = set(self.order)
        return tuple(step for step in range(len(self.flow)) if step not in shown)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a row per step (matplotlib), in the order of the video, with a bar over its clips.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        """
        from graph2vid.alignment.alignment_plot import Span, bars_of, plot_lanes

        return plot_lanes(self.flow, bars_of(self.labels), Span(0, len(self.labels)), ax)

    def plot_costs(self, match: npt.ArrayLike, drop: npt.ArrayLike | None = None, ax: Axes | None = None) -> Axes:
        """Draw the match costs as a heat map, steps × clips, and the path of the alignment on it (matplotlib).

        Parameters
        ----------
        match : array [K, N]
            The match costs; dark is cheap, what is forbidden (∞) is grey.
        drop : array [N] or number, optional
            The drop costs, as a row for background below the steps.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        """
        from graph2vid.alignment.alignment_plot import Span, plot_matrix

        span = Span(0, len(self.labels))
        return plot_matrix(self.flow, match, self.labels, span, ax, meaning="cost", high_is_good=False, background=drop)

    def plot_bars(
        self,
        others: Mapping[str, Alignment | npt.ArrayLike] | None = None,
        ax: Axes | None = None,
        *,
        name: str = "found",
    ) -> Axes:
        """Draw the segmentation as a coloured row (matplotlib), and others below it to compare.

        Parameters
        ----------
        others : mapping of str to Alignment or labels [N], optional
            Further rows, such as ``{"linear": other, "truth": labels}``.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        name : str
            What this row is called.
        """
        from graph2vid.alignment.alignment_plot import Span, bars_of, plot_rows

        rows = {name: self.labels}
        for other, what in (others or {}).items():
            labels = np.asarray(what.labels if isinstance(what, Alignment) else what)
            if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer) or not labels.size:
                raise InputError(f"row {other!r} must be an alignment, or a whole number per clip")
            if labels.max() >= len(self.flow):
                raise InputError(f"row {other!r}: there is no step {labels.max()}, steps are 0 … {len(self.flow) - 1}")
            rows[other] = labels
        bars = {row: bars_of(labels) for row, labels in rows.items()}
        return plot_rows(self.flow, bars, Span(0, len(self.labels)), ax)

    def _repr_svg_(self) -> str | None:
        if self.clip_labels is None or not len(self.clip_labels):
            return None
        from graph2vid.alignment.alignment_plot import Span, bars_of, lanes_svg

        note = f"{len(self.order)} of {len(self.flow)} steps shown · {len(self.labels)} clips · cost {self.cost:.6g}"
        return lanes_svg(self.flow, bars_of(self.labels), Span(0, len(self.labels)), note)

    def __repr__(self) -> str:
        shown = "" if self.clip_labels is None else f", {len(self.order)} of {len(self.flow)} steps shown"
        proven = f", gap={self.gap:.6g}" if self.gap else ""
        return f"Alignment(cost={self.cost:.6g}{proven}{shown})"


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
    start : float64 [K, N] or None
        How probable it is that each step begins at each clip; None where steps are not one unbroken segment.
    """

    flow: FlowGraph
    cost: float
    probability: npt.NDArray[np.float64]
    options: Mapping[str, Any] = field(default_factory=dict)
    start: npt.NDArray[np.float64] | None = None

    @property
    def expected(self) -> npt.NDArray[np.float64]:
        """Where each step begins and ends on the average, in clips: [K, 2].

        Of the alignments that show the step; NaN where none does. A step that shows clips 3 and 4 begins at 3 and ends
        at 5.
        """
        if self.start is None:
            raise InputError("only steps that are one unbroken segment have one beginning and one end")
        shown = self.probability[:-1]
        follows = np.pad(shown[:, 1:] - self.start[:, 1:], ((0, 0), (0, 1)))  # goes on at the next clip
        ends = shown - follows
        clips = np.arange(shown.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            begin = self.start @ clips / self.start.sum(axis=1)
            end = ends @ (clips + 1) / ends.sum(axis=1)
        return np.where(self.start.sum(axis=1, keepdims=True) > 1e-12, np.stack([begin, end], axis=1), np.nan)

    def confidence(self, segment: ClipSegment) -> float:
        """Mean posterior probability of a segment's step over its clips."""
        found = self.probability[segment.step, segment.start : segment.stop]
        return float(np.add.reduceat(found, [0])[0] / len(found))  # summed as batches sum those of many videos

    def __repr__(self) -> str:
        steps, clips = self.probability.shape
        return f"Posterior(cost={self.cost:.6g}, {steps - 1} steps, {clips} clips)"
