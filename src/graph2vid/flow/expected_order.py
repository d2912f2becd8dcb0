"""Soft edges between all steps of a text: the order in which they are written is the most likely one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.order import bits

STRENGTH = 8.0
"""What it costs in nats to swap two neighbours that are sure to be in order, beside the log-odds of narration.

On narrated videos 4 to 16 are about as good (``python -m tests.howtos``, ``graph2vid evaluate crosstask``): less loses
where the text has the order of the video, more where it has not.
"""


def as_written(flow: FlowGraph, probability: npt.NDArray[Any] | None = None) -> FlowGraph:
    """Return a graph whose steps are expected as they are written, at a price and not for certain.

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


def certainly(flow: FlowGraph, edge: tuple[int, int]) -> FlowGraph:
    """Return a graph with one more certain edge; soft edges that contradict it are left out, the least sure first."""
    certain = {other: sure for other, sure in flow.confidence.items() if sure == 1.0} | {edge: 1.0}
    made = flow.with_edges(certain)  # a cycle of certain edges is an error
    follows = list(made.descendants)
    soft = sorted(((sure, pair) for pair, sure in flow.confidence.items() if sure < 1.0 and pair != edge), reverse=True)
    for sure, (step, later) in soft:
        if not follows[later] >> step & 1:
            certain[step, later] = sure
            for other, mask in enumerate(list(follows)):
                if other == step or mask >> step & 1:
                    follows[other] |= follows[later] | 1 << later
    return flow.with_edges(certain)
