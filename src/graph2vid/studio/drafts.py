"""A flow graph that is being edited, and why each of its edges is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import FlowGraph, Step, certainly, quoted

MOST_STEPS = 400
"""More steps than this cannot be edited by hand."""
MOST_CHARACTERS = 2000
"""The longest text of a step."""

ADDED = "added by hand"
REVERSED = "reversed by hand"


@dataclass(frozen=True)
class EdgeReason:
    """Why the step with the id ``before`` comes before ``after``: a rule, and the words it rests on."""

    before: str
    after: str
    rule: str
    words: str = ""


@dataclass(frozen=True)
class Draft:
    """A flow graph that is being edited.

    Attributes
    ----------
    flow : FlowGraph
    reasons : tuple of EdgeReason
        Why edges are there; some belong to precedences that other edges imply.
    """

    flow: FlowGraph
    reasons: tuple[EdgeReason, ...] = ()

    def __post_init__(self) -> None:
        if len(self.flow) > MOST_STEPS:
            raise GraphError(f"the studio edits up to {MOST_STEPS} steps; this procedure has {len(self.flow)}")
        for step in self.flow.steps:
            if len(step.text) > MOST_CHARACTERS:
                raise GraphError(f"the text of {self._named(step.id)} is longer than {MOST_CHARACTERS} characters")

    def _named(self, step: str) -> str:
        """Name a step by its number, its place in the procedure, as the editor does."""
        return f"step {self.flow.index(step) + 1}"

    @contextmanager
    def _in_numbers(self, why: str = "") -> Iterator[None]:
        """Let errors that name steps by their ids say ``why``, and name them by the numbers that the editor shows."""
        try:
            yield
        except GraphError as error:
            numbers = {quoted(step): str(number) for number, step in enumerate(self.flow.ids, start=1)}
            known = re.compile("|".join(re.escape(name) for name in sorted(numbers, key=len, reverse=True)))
            raise GraphError(why + known.sub(lambda found: numbers[found[0]], str(error))) from None

    # -- edges ---------------------------------------------------------------------------------------------

    def with_edge(self, before: str, after: str, rule: str = ADDED) -> Draft:
        """Let one step wait for another; refused if that closes a cycle."""
        pair = self.flow.index(before), self.flow.index(after)
        if self.flow.confidence.get(pair) == 1.0:
            raise GraphError(f"{self._named(after)} waits for {self._named(before)} already")
        with self._in_numbers(f"{pair[0] + 1} → {pair[1] + 1} is refused: "):
            flow = certainly(self.flow, pair)
        return Draft(flow, (*self.reasons, EdgeReason(before, after, rule)))

    def without_edge(self, before: str, after: str) -> Draft:
        """Let one step no longer wait for another."""
        pair = self.flow.index(before), self.flow.index(after)
        if pair not in self.flow.edges:
            raise GraphError(f"there is no edge from {self._named(before)} to {self._named(after)}")
        flow = self.flow.with_edges({edge: sure for edge, sure in self.flow.confidence.items() if edge != pair})
        return Draft(flow, tuple(r for r in self.reasons if (r.before, r.after) != (before, after)))

    def with_edge_reversed(self, before: str, after: str) -> Draft:
        """Turn an edge around; refused if another way leads from ``before`` to ``after``."""
        return self.without_edge(before, after).with_edge(after, before, REVERSED)

    # -- steps ---------------------------------------------------------------------------------------------

    def with_step(self, text: str, after: str | None = None) -> Draft:
        """Add a step at the end, which waits for the step ``after`` if one is named."""
        step = Step(_fresh_id(self.flow), text)
        draft = Draft(replace(self.flow, steps=(*self.flow.steps, step)), self.reasons)
        return draft if after is None else draft.with_edge(after, step.id)

    def without_step(self, step: str) -> Draft:
        """Remove a step; what it waited for now comes before what waited for it."""
        self.flow.index(step)
        kept = tuple(reason for reason in self.reasons if step not in (reason.before, reason.after))
        return Draft(self.flow.without([step]), kept)

    def renamed(self, step: str, text: str) -> Draft:
        """Give a step another text."""
        return Draft(self.flow.relabel({step: Step(step, text)}), self.reasons)

    def with_optional(self, step: str, optional: bool) -> Draft:
        """Say whether a step may be left out."""
        place = self.flow.index(step)
        marked = {*self.flow.optional, place} if optional else {*self.flow.optional} - {place}
        return Draft(replace(self.flow, optional=tuple(marked)), self.reasons)

    def with_alternative(self, step: str, other: str) -> Draft:
        """Let one step be done instead of another; where that one has alternatives already, it is one more."""
        if self.flow.index(step) == self.flow.index(other):
            raise GraphError("a step is no alternative to itself")
        named = _Named.of(self.flow)
        mine, theirs = named.branch_of(step), named.branch_of(other)
        if mine is not None and theirs is not None:
            raise GraphError(f"{self._named(step)} and {self._named(other)} both have alternatives already")
        if (group := theirs or mine) is not None:
            named.alternatives[group[0]].append([step if theirs else other])
        else:
            named.alternatives.append([[other], [step]])
        with self._in_numbers():
            return Draft(named.flow(), self.reasons)

    def without_alternative(self, step: str) -> Draft:
        """Let a step be done whatever else is."""
        self.flow.index(step)
        named = _Named.of(self.flow)
        if named.branch_of(step) is None:
            raise GraphError(f"{self._named(step)} has no alternatives")
        named.replace_in_branches({step: []})
        kept = ([branch for branch in group if branch] for group in named.alternatives)
        named.alternatives = [group for group in kept if len(group) > 1]
        return Draft(named.flow(), self.reasons)

    def with_split(self, step: str, texts: tuple[str, ...]) -> Draft:
        """Make several steps of one, each after the other; the first keeps the id."""
        if len(texts) < 2:
            raise GraphError("a step is split into at least two: give each a line of its own")
        place = self.flow.index(step)
        parts = [
            Step(step if ahead == 0 else _fresh_id(self.flow, ahead - 1), text) for ahead, text in enumerate(texts)
        ]
        ids, last = [part.id for part in parts], parts[-1].id
        named = _Named.of(self.flow)
        named.steps[place : place + 1] = parts
        named.edges = {(last if a == step else a, b): sure for (a, b), sure in named.edges.items()}
        named.edges |= dict.fromkeys(pairwise(ids), 1.0)
        if step in named.optional:
            named.optional += ids[1:]
        named.replace_in_branches({step: ids})
        reasons = [replace(r, before=last) if r.before == step else r for r in self.reasons]
        reasons += [EdgeReason(a, b, "split by hand") for a, b in pairwise(ids)]
        return Draft(named.flow(), tuple(reasons))

    def with_merged(self, steps: tuple[str, ...], text: str | None = None) -> Draft:
        """Make one step of several; it keeps the first's id and place, and all their edges."""
        places = sorted({self.flow.index(step) for step in steps})
        if len(places) < 2:
            raise GraphError("at least two steps are merged")
        ids = [self.flow.ids[place] for place in places]
        kept, gone = ids[0], ids[1:]
        new = dict.fromkeys(gone, kept)
        together = f"the steps {', '.join(str(place + 1) for place in places)}"
        named = _Named.of(self.flow)
        if len({named.branch_of(step) for step in ids}) > 1:
            raise GraphError(f"{together} cannot be one: some of them are alternatives to others")
        joined = text if text is not None else " ".join(self.flow.texts[place] for place in places)
        named.steps = [Step(kept, joined) if s.id == kept else s for s in named.steps if s.id not in gone]
        merged: dict[tuple[str, str], float] = {}
        for (a, b), sure in named.edges.items():
            pair = new.get(a, a), new.get(b, b)
            if pair[0] != pair[1]:
                merged[pair] = max(sure, merged.get(pair, 0.0))
        named.edges = merged
        is_optional = {*ids} <= {*named.optional}
        named.optional = [s for s in named.optional if s not in ids] + [kept] * is_optional
        named.replace_in_branches({step: [] for step in gone})
        with self._in_numbers(f"{together} cannot be one, for others come between them: "):
            flow = named.flow()
        reasons = (
            EdgeReason(new.get(r.before, r.before), new.get(r.after, r.after), r.rule, r.words) for r in self.reasons
        )
        return Draft(flow, tuple(dict.fromkeys(reason for reason in reasons if reason.before != reason.after)))

    # -- JSON ----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the draft as a JSON document: that of its flow graph, and the reasons."""
        return self.flow.to_json() | {"reasons": [asdict(reason) for reason in self.reasons]}

    @classmethod
    def from_json(cls, value: Any, source: str = "flow graph") -> Draft:
        """Read the JSON document of a draft, or of a flow graph."""
        flow = FlowGraph.from_json(value, source=source)
        reasons = value.get("reasons", [])
        if not isinstance(reasons, list):
            raise FormatError(f"{source}: reasons must be a list")
        return cls(flow, tuple(_reason(entry, source) for entry in reasons))

    @classmethod
    def from_parse(cls, document: Mapping[str, Any], source: str = "parse") -> Draft:
        """Read what ``graph2vid parse --json`` writes: its flow graph and the reasons for its edges."""
        from graph2vid.text import parse_from_json

        parse = parse_from_json(dict(document), source)
        ids = parse.flow.ids
        return cls(parse.flow, tuple(EdgeReason(ids[r.before], ids[r.after], r.rule, r.words) for r in parse.reasons))


@dataclass
class _Named:
    """A flow graph in which everything goes by ids, so that steps can come and go."""

    steps: list[Step]
    edges: dict[tuple[str, str], float]
    title: str
    optional: list[str]
    alternatives: list[list[list[str]]]

    @classmethod
    def of(cls, flow: FlowGraph) -> _Named:
        return cls(
            list(flow.steps),
            {(flow.ids[a], flow.ids[b]): sure for (a, b), sure in flow.confidence.items()},
            flow.title,
            [flow.ids[step] for step in flow.optional],
            [[[flow.ids[step] for step in branch] for branch in group] for group in flow.alternatives],
        )

    def branch_of(self, step: str) -> tuple[int, int] | None:
        """Return the group and the branch that a step belongs to."""
        groups = ((at, group) for at, group in enumerate(self.alternatives))
        places = ((at, branch) for at, group in groups for branch, steps in enumerate(group) if step in steps)
        return next(places, None)

    def replace_in_branches(self, new: Mapping[str, list[str]]) -> None:
        """Put other steps in the place of some."""
        self.alternatives = [
            [[other for step in branch for other in new.get(step, [step])] for branch in group]
            for group in self.alternatives
        ]

    def flow(self) -> FlowGraph:
        return FlowGraph.from_edges(
            self.steps,
            [(a, b, sure) for (a, b), sure in self.edges.items()],
            self.title,
            optional=self.optional,
            alternatives=self.alternatives,
        )


def _reason(entry: Any, source: str) -> EdgeReason:
    try:
        return EdgeReason(str(entry["before"]), str(entry["after"]), str(entry["rule"]), str(entry.get("words", "")))
    except (TypeError, KeyError, AttributeError):
        raise FormatError(f"{source}: a reason has before, after, rule and words, not {quoted(entry)}") from None


def _fresh_id(flow: FlowGraph, ahead: int = 0) -> str:
    """Return an id that no step has: the number after the largest in use, and ``ahead`` more."""
    largest = max((int(step) for step in flow.ids if step.isdecimal() and len(step) < 9), default=0)
    return str(max(largest, len(flow)) + 1 + ahead)
