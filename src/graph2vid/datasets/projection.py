"""Flow graphs over the instructions of a how-to text, carried over to the steps of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from graph2vid.flow import FlowGraph


def onto_steps(flow: FlowGraph, correspondence: Sequence[Sequence[int]], steps: Sequence[str]) -> FlowGraph:
    """Return what a flow graph over instructions says about the steps that these instructions stand for.

    A step comes before another when some instruction of it must come before some instruction of the other, and none
    the other way round. Steps without an instruction, and steps that share all of theirs, stay free. Pairs that
    would close a cycle, which steps of several instructions can, are left out in the order of the steps.

    Parameters
    ----------
    flow : FlowGraph
        Over the instructions.
    correspondence : sequence of sequences of int
        For each step its instructions: possibly none, possibly several.
    steps : sequence of str
        The steps.

    Returns
    -------
    FlowGraph
        Over the steps, transitively reduced.
    """
    earlier = [0] * len(steps)  # instructions that must come before some instruction of the step
    own = [0] * len(steps)
    for step, instructions in enumerate(correspondence):
        for instruction in instructions:
            own[step] |= 1 << instruction
            earlier[step] |= flow.ancestors[instruction]
    reach = [1 << step for step in range(len(steps))]  # what each step leads to, itself included
    kept = []
    for before, after in permutations(range(len(steps)), 2):
        if not own[before] & earlier[after] or own[after] & earlier[before] or reach[after] >> before & 1:
            continue
        kept.append((before, after))
        for step in range(len(steps)):
            if reach[step] >> before & 1:
                reach[step] |= reach[after]
    return FlowGraph.from_edges(list(steps), kept, flow.title).transitive_reduction()
