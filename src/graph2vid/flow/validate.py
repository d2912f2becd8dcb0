"""What is legal in a flow graph and still likely a slip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted
from graph2vid.flow.steps import Step


class Finding(NamedTuple):
    """Something worth a look.

    Attributes
    ----------
    kind : str
        "redundant edge", "no edges", "isolated step", "repeated text" or "empty text".
    message : str
        What was found, in one line.
    steps : tuple of str
        The ids of the steps concerned.
    """

    kind: str
    message: str
    steps: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {"kind": self.kind, "message": self.message, "steps": list(self.steps)}


def findings(flow: FlowGraph) -> tuple[Finding, ...]:
    """Return all that is worth a look, one entry each, the weightier kinds first."""
    return tuple(_findings(flow))


def _findings(flow: FlowGraph) -> Iterator[Finding]:
    if len(flow) > 1 and not flow.edges:
        yield Finding("no edges", "there are no edges: every order of the steps is legal", flow.ids)
    same: dict[str, list[Step]] = {}
    for step, before, after in zip(flow.steps, flow.predecessors, flow.successors, strict=True):
        if flow.edges and not before and not after:
            message = f"step {quoted(step.id)} has no edges: it may come at any time"
            yield Finding("isolated step", message, (step.id,))
        same.setdefault(" ".join(step.text.split()).casefold(), []).append(step)
    for step in same.pop("", ()):
        yield Finding("empty text", f"step {quoted(step.id)} has no text", (step.id,))
    for steps in same.values():
        if len(steps) > 1:
            names = ", ".join(quoted(step.id) for step in steps)
            message = f"steps {names} have the same text {quoted(steps[0].text)}"
            yield Finding("repeated text", message, tuple(step.id for step in steps))
    for a, b in sorted({*flow.edges} - {*flow.transitive_reduction().edges}):
        via = next(step for step in flow.successors[a] if flow.descendants[step] >> b & 1)
        ends = flow.ids[a], flow.ids[b]
        message = f"edge {quoted(ends[0])} → {quoted(ends[1])} says nothing new: {quoted(flow.ids[via])} lies between"
        yield Finding("redundant edge", message, ends)
