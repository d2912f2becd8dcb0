"""Groundings as figures for papers (matplotlib, extra ``plot``), in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from graph2vid.alignment.alignment_drawing import lanes_svg
from graph2vid.alignment.alignment_plot import Bar, Span, plot_lanes, plot_matrix, plot_rows
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding.grounding_result import Grounding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spans: TypeAlias = Iterable[tuple[int | str, float, float]]
"""Steps (by index or id) with start and end in seconds."""


def plot_steps(grounding: Grounding, ax: Axes | None = None) -> Axes:
    """Draw a row per step: see :meth:`Grounding.plot`."""
    return plot_lanes(grounding.flow, _bars(grounding, confidence=True), _span(grounding), ax)


def plot_bars(grounding: Grounding, others: Mapping[str, Grounding | Spans], name: str, ax: Axes | None = None) -> Axes:
    """Draw this grounding and others, a row each: see :meth:`Grounding.plot_bars`."""
    rows = {name: _bars(grounding)}
    for other, what in others.items():
        rows[other] = _bars(what) if isinstance(what, Grounding) else _of_spans(what, grounding.flow, other)
    return plot_rows(grounding.flow, rows, _span(grounding), ax)


def plot_evidence(grounding: Grounding, ax: Axes | None = None) -> Axes:
    """Draw what speaks for each step, and the path: see :meth:`Grounding.plot_evidence`."""
    if grounding.evidence is None:
        raise InputError("this grounding holds no evidence to draw; ground again with this version of graph2vid")
    return plot_matrix(
        grounding.flow,
        grounding.evidence,
        grounding.labels,
        _span(grounding),
        ax,
        meaning="evidence over background",
        high_is_good=True,
    )


def to_svg(grounding: Grounding) -> str:
    """Draw a row per step as a self-contained SVG document, for notebooks."""
    note = f"{grounding.count} · cost {grounding.cost:.6g}"
    return lanes_svg(grounding.flow, _bars(grounding, confidence=True), _span(grounding), note)


def _bars(grounding: Grounding, *, confidence: bool = False) -> list[Bar]:
    return [
        Bar(one.step, one.start, one.end, one.confidence if confidence and one.confidence is not None else 1.0)
        for one in grounding.segments
    ]


def _of_spans(spans: Spans, flow: FlowGraph, name: str) -> list[Bar]:
    try:
        return [Bar(flow.index(step), float(start), float(end)) for step, start, end in spans]
    except (TypeError, ValueError) as error:
        raise InputError(f"row {name!r} must be a grounding, or (step, start, end) each: {error}") from error


def _span(grounding: Grounding) -> Span:
    return Span(grounding.offset, grounding.end, "time")
