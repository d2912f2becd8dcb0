"""Which stretches of two videos are the same material: another cut, upload, encoding or speed of it.

Moments of the other video are aligned with blocks of the first, in order, with drops on both sides: an exact alignment
with a chain. The pairs that it finds lie on straight lines (time against time), one per stretch that both have; where
a line ends is found on the moments themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Problem
from graph2vid.evidence import HOP_SECONDS, Vectors, stacked
from graph2vid.flow import FlowGraph

Numbers: TypeAlias = NDArray[np.float64]
Spans: TypeAlias = tuple[tuple[float, float], ...]
"""(start, end) each, in seconds."""

_AROUND = 9  # moments that are compared together
_STRIDE = 2  # moments of the other video from one that is aligned to the next
_BLOCK = 32  # moments of the first video in a block
_MOST_CELLS = 32_000_000  # blocks × moments; blocks are longer where there would be more
_ALIKE = 0.65  # similarity from which on moments are taken for the same
_FEW = 3  # moments that are compared together where a stretch may end
_LEAST_GAIN = 1.0  # what a block must be alike beyond that, over all its moments, to count as being there
_STEEPEST = 0.06  # by how much the speeds may differ
_NEAR = 0.5  # seconds within which pairs lie on one line
_VOTES = 6.0  # seconds around in which other pairs must lie on the line of a pair
_BRIDGED = 10.0  # seconds without a pair that do not end a stretch
_LEAST_SECONDS = 5.0
_LEAST_AGREEMENT = 0.6
_LONG = 20.0  # seconds of a stretch from which on it tells its own speed
_LEAST_SPAN = 1.0  # seconds between stretches that are worth naming
_BORDER = 8.0  # seconds around the ends of stretches in which the best ends are looked for


class Stretch(NamedTuple):
    """A stretch that two videos have in common.

    Attributes
    ----------
    source_start, source_end : float
        Where it is in the first video, in seconds.
    start, end : float
        Where it is in the other.
    agreement : float
        The share of its moments that sound more alike than 99% of the moments that do not belong together.
    """

    source_start: float
    source_end: float
    start: float
    end: float
    agreement: float

    def to_other(self, seconds: float) -> float:
        """Return where a time of the first video is in the other."""
        return self.start + (seconds - self.source_start) * self.speed

    def to_source(self, seconds: float) -> float:
        """Return where a time of the other video is in the first."""
        return self.source_start + (seconds - self.start) / self.speed

    @property
    def speed(self) -> float:
        """How much longer it lasts in the other video: 1 is as long."""
        return (self.end - self.start) / (self.source_end - self.source_start)


class _Line(NamedTuple):
    """Source moment = ``slope`` × other moment + ``shift``, of pairs from ``first`` to ``last`` (other moments)."""

    slope: float
    shift: float
    first: int
    last: int


def common_stretches(source: Vectors, other: Vectors) -> tuple[Stretch, ...]:
    """Return the stretches that two videos have in common, in order of time; none where there are none.

    Parameters
    ----------
    source, other : float32 [moments, numbers]
        Their fingerprints.
    """
    wide_source, wide_other = stacked(source, _AROUND), stacked(other, _AROUND)
    pairs = _aligned(wide_source, wide_other[::_STRIDE])
    pairs[:, 1] *= _STRIDE
    lines = _with_speeds(_runs(pairs))
    lines = _with_borders(lines, stacked(source, _FEW), stacked(other, _FEW))
    usual = _usual(wide_source, wide_other)
    found = []
    for line in lines:
        moments = np.arange(line.first, line.last + 1)
        agreement = float(np.mean(_along(line, moments, wide_source, wide_other) > usual))
        start, end = line.first * HOP_SECONDS, (line.last + 1) * HOP_SECONDS
        source_start, source_end = ((line.slope * at + line.shift) * HOP_SECONDS for at in (line.first, line.last + 1))
        if end - start >= _LEAST_SECONDS and agreement >= _LEAST_AGREEMENT:
            found.append(Stretch(max(source_start, 0.0), source_end, start, end, agreement))
    return tuple(found)


def _aligned(source: Vectors, other: Vectors) -> NDArray[np.int64]:
    """Return pairs [P, 2] of moments (source, other) that an alignment in order takes for the same."""
    block = max(_BLOCK, -(-len(source) * len(other) // _MOST_CELLS))
    starts = np.arange(0, len(source), block)
    match = np.empty((len(starts), len(other)), np.float32)
    for at, start in enumerate(starts):
        np.max(source[start : start + block] @ other.T, axis=0, out=match[at])
    np.subtract(1.0, match, out=match)
    chain = FlowGraph.chain([f"block {at}" for at in range(len(starts))])
    labels = Problem(chain, match, 1.0 - _ALIKE, skip=-_LEAST_GAIN).align("exact").labels
    assert labels is not None
    pairs = []
    for step in np.unique(labels[labels >= 0]):
        moments = np.flatnonzero(labels == step)
        alike = source[starts[step] : starts[step] + block] @ other[moments].T
        best, value = alike.argmax(axis=0), alike.max(axis=0)
        sure = value >= _ALIKE
        pairs.append(np.stack([starts[step] + best[sure], moments[sure]], axis=1))
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)


def _runs(pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the pairs on each line, in order of time: those that most pairs around agree with."""
    near, votes = _NEAR / HOP_SECONDS, _VOTES / HOP_SECONDS
    offsets, moments = pairs[:, 0] - pairs[:, 1], pairs[:, 1]
    first, last = np.searchsorted(moments, moments - votes), np.searchsorted(moments, moments + votes, "right")
    kept = []
    for at, (begin, end) in enumerate(zip(first, last, strict=True)):
        # On either side of a cut only the pairs of that side agree.
        sides = [offsets[begin : at + 1], offsets[at:end]]
        if any(len(side) > 3 and np.mean(np.abs(side - offsets[at]) <= near) > 0.6 for side in sides):
            kept.append(at)
    runs: list[list[int]] = []
    for at in kept:
        if runs:
            before = runs[-1][-1]
            gap = moments[at] - moments[before]
            same = abs(offsets[at] - offsets[before]) <= near + _STEEPEST * gap
            if same and gap * HOP_SECONDS <= _BRIDGED:
                runs[-1].append(at)
                continue
        runs.append([at])
    return [pairs[run] for run in runs if len(run) > 3]


def _with_speeds(runs: list[NDArray[np.int64]]) -> list[_Line]:
    """Fit a line to each run; short ones have the speed of the others."""
    long = [run for run in runs if np.ptp(run[:, 1]) * HOP_SECONDS >= _LONG]
    speeds = [_fitted(run, None)[0] for run in long]
    usual = float(np.median(speeds)) if speeds else 1.0
    lines = []
    for run in runs:
        slope, shift = _fitted(run, None if np.ptp(run[:, 1]) * HOP_SECONDS >= _LONG else usual)
        lines.append(_Line(slope, shift, int(run[0, 1]), int(run[-1, 1])))
    return lines


def _fitted(run: NDArray[np.int64], slope: float | None) -> tuple[float, float]:
    """Fit a line by least squares, again and again without what lies far from it."""
    source, other = run[:, 0].astype(float), run[:, 1].astype(float)
    kept = np.ones(len(run), bool)
    found = slope or 1.0, 0.0
    for _ in range(4):
        if slope is None:
            tilt, shift = np.polyfit(other[kept], source[kept], 1)
            tilt = float(np.clip(tilt, 1 - _STEEPEST, 1 + _STEEPEST))
        else:
            tilt = slope
        shift = float(np.median(source[kept] - tilt * other[kept]))
        found = tilt, shift
        away = np.abs(source - tilt * other - shift)
        near = away <= max(2.0, 1.5 * float(np.median(away)))
        if near.sum() < 3:
            break
        kept = near
    return found


def _along(line: _Line, moments: NDArray[np.int64], source: Vectors, other: Vectors) -> Numbers:
    """Return how alike the other's moments are to those of the source that the line says, or next to these."""
    places = np.rint(line.slope * moments + line.shift).astype(int)
    alike = np.full(len(moments), -1.0)
    for near in (-1, 0, 1):
        there = (places + near >= 0) & (places + near < len(source))
        values = np.einsum("nd,nd->n", source[places[there] + near], other[moments[there]])
        alike[there] = np.maximum(alike[there], values)
    return alike


def _with_borders(lines: list[_Line], source: Vectors, other: Vectors) -> list[_Line]:
    """Move the ends of lines to where they gain most: what is alike on the line before or on the one after."""
    reach = round(_BORDER / HOP_SECONDS)
    firsts, lasts = [one.first for one in lines], [one.last for one in lines]
    for at in range(len(lines) + 1):
        before = lines[at - 1] if at else None
        after = lines[at] if at < len(lines) else None
        low = 0 if before is None else max(before.last - reach, (before.first + before.last) // 2)
        high = len(other) - 1 if after is None else min(after.first + reach, (after.first + after.last) // 2)
        if before is None and after is not None:
            low = max(0, after.first - 10 * reach)
        if after is None and before is not None:
            high = min(len(other) - 1, before.last + 10 * reach)
        moments = np.arange(low, max(high, low) + 1)
        gains = [
            np.zeros(len(moments)) if one is None else _along(one, moments, source, other) - _ALIKE
            for one in (before, after)
        ]
        # The line before holds the first ``ends`` of these moments, the one after those from ``begins`` on.
        of_before = np.concatenate([[0.0], np.cumsum(gains[0])])
        of_after = np.concatenate([np.cumsum(gains[1][::-1])[::-1], [0.0]])
        if before is None:
            of_before[1:] = -np.inf
        apart = 0 if before is None or after is None else _apart(before, after, (low + high) / 2)
        best_end = np.maximum.accumulate(of_before)[np.clip(np.arange(len(moments) + 1) - apart, 0, None)]
        begins = int(np.argmax(best_end + of_after)) if after is not None else len(moments)
        ends = int(np.argmax(of_before[: max(begins - apart, 0) + 1]))
        if before is not None:
            lasts[at - 1] = low + ends - 1
        if after is not None:
            firsts[at] = low + begins
    moved = [one._replace(first=first, last=last) for one, first, last in zip(lines, firsts, lasts, strict=True)]
    return [one for one in moved if one.last > one.first]


def _apart(before: _Line, after: _Line, at: float) -> int:
    """Return how many moments must lie between two lines so that no moment of the source is on both."""
    back = (before.slope - after.slope) * at + before.shift - after.shift
    return max(round(back / after.slope), 0)


def _usual(source: Vectors, other: Vectors) -> float:
    """Return how alike moments are that do not belong together, 99% of them at the most."""
    rng = np.random.default_rng(0)
    count = 20_000
    chosen = source[rng.integers(len(source), size=count)], other[rng.integers(len(other), size=count)]
    return float(np.percentile(np.einsum("nd,nd->n", *chosen), 99))


def missing(stretches: Sequence[Stretch], source_seconds: float, seconds: float) -> tuple[Spans, Spans]:
    """Return what of the first video is not in the other, and what of the other is new: spans of seconds."""
    cut = _between([(one.source_start, one.source_end) for one in stretches], source_seconds)
    return cut, _between([(one.start, one.end) for one in stretches], seconds)


def _between(spans: list[tuple[float, float]], end: float) -> Spans:
    edges = [(0.0, 0.0), *spans, (end, end)]
    return tuple((a[1], b[0]) for a, b in pairwise(edges) if b[0] - a[1] >= _LEAST_SPAN)
