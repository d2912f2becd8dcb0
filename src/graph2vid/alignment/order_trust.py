"""Trust in the expected order of a procedure, from how well a video goes with it."""

from __future__ import annotations

import numpy as np

from graph2vid.alignment.backends import Resources, solve_plain
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

_LEVELS = ((2.0, 0.0), (8.0, 1.0), (np.inf, 8.0))
"""Factors of what soft edges cost, up to how many nats a step (:func:`order_margin`).

Chosen on narrated videos (``graph2vid evaluate youcook2 --parsers auto``, the same with ``-o shuffle=1``, ``evaluate
crosstask``) and on how-tos spoken in another order than written (``python -m tests.howtos``). In the median texts that
are written from the video itself have 16 nats, how-tos 5 to 6, shuffled texts 4.
"""


def order_margin(costs: ClipCosts, steps: list[int]) -> float:
    """Return by how much a video goes better with an order of its steps than with the reverse one, per step.

    NaN where either order cannot be aligned at all.
    """
    chain = TSortGraph.compile(FlowGraph.chain([str(place) for place in range(len(steps))]))
    resources = Resources.check()
    totals = []
    for order in (steps, steps[::-1]):
        skip = None if costs.skip is None else np.ascontiguousarray(costs.skip[order])
        in_order = ClipCosts(np.ascontiguousarray(costs.match[order]), costs.drop, skip)
        totals.append(solve_plain(chain, in_order, True, True, resources)[0])
    written, reverse = totals
    return (reverse - written) / len(steps) if np.isfinite(written) and np.isfinite(reverse) else np.nan


def order_trust(flow: FlowGraph, costs: ClipCosts) -> float:
    """Return the factor of what it costs to show soft edges the other way round, for :class:`Problem`.

    An expected order that a video does not follow costs right answers, and one that it follows closely gives them: so
    it says nothing, something, or much, by how much better the video goes with it than with its reverse. In units of
    cost, which are nats for narration.
    """
    if not flow.confidences or len(flow) == 1:
        return 1.0
    margin = order_margin(costs, list(flow.topological_order))
    return next((factor for most, factor in _LEVELS if margin < most), 1.0)
