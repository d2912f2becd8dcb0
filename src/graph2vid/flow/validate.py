"""What is legal in a flow graph and still likely a slip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted


@dataclass(frozen=True)
class Finding:
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
    return (*_isolated(flow), *_texts(flow), *_redundant(flow))


def _isolated(flow: FlowGraph) -> list[Finding]:
    if len(flow) == 1:
        return []
    if not flow.edges:
        return [Finding("no edges", "there are no edges: every order of the steps is legal", flow.ids)]
    return [
        Finding(
            "isolated step", f"step {quoted(flow.ids[step])} has no edges: it may come at any time", (flow.ids[step],)
        )
        for step in range(len(flow))
        if not flow.predecessors[step] and not flow.successors[step]
    ]


def _texts(flow: FlowGraph) -> list[Finding]:
    found = []
    same: dict[str, list[str]] = {}
    for step in flow.steps:
        words = " ".join(step.text.split()).casefold()
        if words:
            same.setdefault(words, []).append(step.id)
        else:
            found.append(Finding("empty text", f"step {quoted(step.id)} has no text", (step.id,)))
    for ids in same.values():
        if len(ids) > 1:
            names = ", ".join(map(quoted, ids))
            text = quoted(flow.texts[flow.index(ids[0])])
            found.append(Finding("repeated text", f"steps {names} have the same text {text}", tuple(ids)))
    return found


def _redundant(flow: FlowGraph) -> list[Finding]:
    kept = set(flow.transitive_reduction().edges)
    found = []
    for a, b in flow.edges:
        if (a, b) not in kept:
            via = next(step for step in flow.successors[a] if flow.descendants[step] >> b & 1)
            before, between, after = (flow.ids[step] for step in (a, via, b))
            message = f"edge {quoted(before)} → {quoted(after)} says nothing new: {quoted(between)} lies between"
            found.append(Finding("redundant edge", message, (before, after)))
    return found
