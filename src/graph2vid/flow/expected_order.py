"""Soft edges between all steps of a text: the order in which they are written is the most likely one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.order import bits

STRENGTH = 4.0
"""Cost in nats of swapping two neighbours that are sure to be in order, beside the log-odds of narration.

A video says itself how far this is to be trusted (:func:`graph2vid.alignment.order_trust`).
"""


def as_written(flow: FlowGraph, probability: npt.NDArray[Any] | None = None) -> FlowGraph:
    """Return a graph whose steps are expected as they are written, at a cost and not for certain.

    To show step j before step i < j costs ``STRENGTH · (2p - 1) / (j - i)`` nats, with p the probability that i must
    come first: near neighbours must not swap lightly, far ones may.

    Parameters
    ----------
    flow : FlowGraph
        Whose edges go forward in the text.
    probability : array [K, K], optional
        That a step must come before a later one; without it, all pairs are expected as written. Pairs without a
        path in the graph are left out where it is given.
    """
    count = len(flow)
    if probability is None:
        pairs = [(step, later) for step in range(count) for later in range(step + 1, count)]
    else:
        pairs = [(step, later) for step in range(count) for later in bits(flow.descendants[step])]
    chance = np.ones((count, count)) if probability is None else np.asarray(probability, np.float64)
    nats = {(i, j): STRENGTH * max(2.0 * chance[i, j] - 1.0, 0.0) / (j - i) for i, j in pairs}
    return flow.with_edges({pair: round(float(1.0 / (1.0 + np.exp(-cost))), 5) for pair, cost in nats.items()})


def surest(flow: FlowGraph, confidence: Mapping[tuple[int, int], float]) -> FlowGraph:
    """Return a graph with other edges: the surest first, as many as close no cycle."""
    reach = [1 << step for step in range(len(flow))]
    kept = {}
    for (before, after), sure in sorted(confidence.items(), key=lambda edge: -edge[1]):
        if not reach[after] >> before & 1:
            kept[before, after] = sure
            reach = [mask | reach[after] if mask >> before & 1 else mask for mask in reach]
    return flow.with_edges(kept)


def certainly(flow: FlowGraph, edge: tuple[int, int]) -> FlowGraph:
    """Return a graph with one more certain edge, without soft ones that contradict it; a certain cycle is an error."""
    flow.with_edges({**flow.sure.confidence, edge: 1.0})
    return surest(flow, {**flow.confidence, edge: 1.0})
