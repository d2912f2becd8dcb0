"""The flow graph: the steps of a procedure, and what must be finished before what begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graph2vid.errors import GraphError
from graph2vid.flow import choices, order
from graph2vid.flow.messages import check_text, counted, cycle, no_such_index, quoted, self_loop
from graph2vid.flow.steps import Step, StepLike, StepReference, as_step, index_by_id, resolve, resolve_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class FlowGraph:
    """A directed acyclic graph over steps; an edge (a, b) says that a must be finished before b begins.

    Flow graphs are immutable, hashable and equal when all attributes are. Steps are numbered from 0
    in the order given. Build one with :meth:`from_edges`, :meth:`chain`, :meth:`bag` or :meth:`mine`, or
    :meth:`load` one.

    Attributes
    ----------
    steps : tuple of Step
        The steps; at least one, no id twice.
    edges : tuple of (int, int)
        Pairs of step indices, sorted, each once; as given, so edges that others imply are kept.
    title : str
        What the procedure is called; may be empty.
    optional : tuple of int
        Steps that may be left out freely, sorted.
    alternatives : tuple of groups
        Each group is a tuple of branches, each branch a tuple of steps; exactly one branch of a group is done.
    confidences : tuple of float
        How sure each edge is, above 0 and at most 1, in the order of ``edges``; empty when all are certain. What is
        not certain may be violated at a cost (:func:`graph2vid.align`).

    Examples
    --------
    >>> flow = FlowGraph.from_edges(["cut tomato", "cut cucumber", "mix"], [(0, 2), (1, 2)])
    >>> flow
    FlowGraph(3 steps, 2 edges)
    >>> flow.width
    2
    """

    steps: tuple[Step, ...]
    edges: tuple[tuple[int, int], ...] = ()
    title: str = ""
    optional: tuple[int, ...] = ()
    alternatives: tuple[choices.Group, ...] = ()
    confidences: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        edges, confidences = choices.sort_edges(self.edges, self.confidences)
        vars(self).update(steps=tuple(self.steps), edges=edges, confidences=confidences)
        check_text(self.title, "the title of a flow graph")
        if not self.steps:
            raise GraphError("the flow graph has no steps; it needs at least one")
        index_by_id(self.steps)
        count = len(self.steps)
        for a, b in edges:
            for end in (a, b):
                if not 0 <= end < count:
                    raise GraphError(f"edge ({a}, {b}): {no_such_index(end, count)}")
            if a == b:
                raise GraphError(self_loop(self.steps[a].id))
        if len(self.topological_order) < count:
            raise GraphError(cycle([self.steps[step].id for step in order.find_cycle(self.successors)]))
        vars(self)["optional"] = choices.sorted_steps(self.optional, len(self), "optional steps")
        vars(self)["alternatives"] = choices.check_alternatives(self.alternatives, self.ids)
        if self.alternatives:
            choices.refuse_contradictions(self.alternatives, self.descendants, self.ids)

    # -- building ------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls,
        steps: Iterable[StepLike],
        edges: Iterable[tuple[StepReference, StepReference] | tuple[StepReference, StepReference, float]] = (),
        title: str = "",
        *,
        optional: Iterable[StepReference] = (),
        alternatives: Iterable[Iterable[StepReference | Iterable[StepReference]]] = (),
    ) -> FlowGraph:
        """Build a flow graph from steps and precedence edges.

        Parameters
        ----------
        steps : iterable of str, Step or (id, text)
            A bare text gets its place as id, counted from 1: ``"1"``, ``"2"``, ….
        edges : iterable of (step, step) or (step, step, confidence)
            What comes before what, each step by index (int, from 0) or by id (str), and how sure that is (above 0, at
            most 1); without a confidence it is certain.
        title : str
            What the procedure is called.
        optional : iterable of steps
            What may be left out freely.
        alternatives : iterable of groups
            Each group lists its branches; a branch is a step or several. Exactly one branch of a group is done.

        Raises
        ------
        GraphError
            No steps, an id twice, an unknown step, a step before itself, a cycle, or alternatives that contradict one
            another.
        """
        if isinstance(steps, str):
            raise GraphError("the steps must be a list of texts, not one string")
        made = tuple(as_step(step, index) for index, step in enumerate(steps))
        index_of = index_by_id(made)
        pairs: list[tuple[int, int]] = []
        confidences: list[float] = []
        certain = True
        for number, edge in enumerate(edges):
            try:
                before, after, *sure = () if isinstance(edge, str) else edge
                (confidence,) = sure or (1.0,)
            except (TypeError, ValueError):
                raise GraphError(f"edge {number} must be a pair of steps, not {quoted(edge)}") from None
            try:
                pairs.append((resolve(before, index_of), resolve(after, index_of)))
            except GraphError as error:
                raise GraphError(f"edge {number} ({quoted(before)} → {quoted(after)}): {error}") from None
            confidences.append(confidence)
            certain = certain and not sure
        left_out = resolve_all(optional, index_of)
        groups = tuple(tuple(resolve_all(branch, index_of) for branch in group) for group in alternatives)
        return cls(made, tuple(pairs), title, left_out, groups, () if certain else tuple(confidences))

    @classmethod
    def chain(cls, steps: Iterable[StepLike], title: str = "") -> FlowGraph:
        """Build the flow graph in which every step waits for the one before it."""
        steps = steps if isinstance(steps, str) else list(steps)
        return cls.from_edges(steps, [(i, i + 1) for i in range(len(steps) - 1)], title)

    @classmethod
    def bag(cls, steps: Iterable[StepLike], title: str = "") -> FlowGraph:
        """Build the flow graph in which no step waits for another."""
        return cls.from_edges(steps, (), title)

    @classmethod
    def mine(
        cls,
        sequences: Iterable[Sequence[StepReference]],
        steps: Iterable[StepLike] | None = None,
        *,
        min_support: int = 5,
        tolerance: float = 0.0,
        title: str = "",
        confidences: bool = False,
    ) -> FlowGraph:
        """Build the flow graph of the precedences that executions (almost) never violate, transitively reduced.

        :func:`graph2vid.flow.mine.mine_precedences` does the same and says how sure each edge is.

        Parameters
        ----------
        sequences : iterable of sequences
            Steps in the order in which they were done, by index (int) or id (str); of a repeated step the first
            occurrence counts, and steps may be missing.
        steps : iterable of str, Step or (id, text), optional
            The steps of the procedure; by default the ids that occur.
        min_support : int
            In how many sequences two steps must both occur before anything is said about their order.
        tolerance : float
            The share of these sequences that may have the other order; less than 0.5.
        title : str
            What the procedure is called.
        confidences : bool
            Whether the edges carry their confidence, and may be violated at a cost; otherwise they are certain.
        """
        mined = mine.mine_precedences(sequences, steps, min_support=min_support, tolerance=tolerance, title=title)
        return mined.flow.with_confidence(mined.confidence) if confidences else mined.flow

    # -- looking -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        name = f"{quoted(self.title)}, " if self.title else ""
        return f"FlowGraph({name}{counted(len(self), 'step')}, {counted(len(self.edges), 'edge')})"

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Only what defines the graph is pickled; caches are made again on demand.
        return (type(self), tuple(getattr(self, field.name) for field in fields(self)))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the steps."""
        return tuple(step.id for step in self.steps)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the steps."""
        return tuple(step.text for step in self.steps)

    @cached_property
    def _hash(self) -> int:
        """What it is found by, again and again."""
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    @cached_property
    def confidence(self) -> Mapping[tuple[int, int], float]:
        """How sure each edge is: 1 is certain."""
        return dict(zip(self.edges, self.confidences or (1.0,) * len(self.edges), strict=True))

    @cached_property
    def sure(self) -> FlowGraph:
        """The same graph with its certain edges alone."""
        return self.with_edges({e: c for e, c in self.confidence.items() if c == 1.0}) if self.confidences else self

    @cached_property
    def is_plain(self) -> bool:
        """Whether every edge is certain and every step is done: nothing is optional or an alternative."""
        return not (self.has_choices or self.confidences)

    @property
    def has_choices(self) -> bool:
        """True if some steps need not be done: optional ones, or alternatives."""
        return bool(self.optional or self.alternatives)

    def marks(self, step: int) -> tuple[str, ...]:
        """Say in a word or two whether a step need be done: "optional", "one of 1: b" (branch b of group 1)."""
        found = ["optional"] if step in self.optional else []
        for number, group in enumerate(self.alternatives, start=1):
            places = (place for place, branch in enumerate(group) if step in branch)
            found += [f"one of {number}: {chr(ord('a') + place) if place < 26 else place + 1}" for place in places]
        return tuple(found)

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return index_by_id(self.steps)

    def index(self, step: StepReference) -> int:
        """Return the index of the step with this id (an index is checked and handed back)."""
        return resolve(step, self._index_of)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps that an edge leads to (ascending)."""
        return order.adjacency(self.edges, len(self))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps that an edge comes from (ascending)."""
        return order.adjacency(((b, a) for a, b in self.edges), len(self))

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """For each step, the bit mask of the steps that must come later (the step itself excluded)."""
        return order.reachable(self.successors, self.topological_order)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each step, the bit mask of the steps that must come earlier (the step itself excluded)."""
        return order.reachable(self.predecessors, self.topological_order[::-1])

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """A legal order of the steps: always the smallest index that is ready."""
        return order.topological_order(self.successors)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The steps that wait for nothing."""
        return tuple(step for step, before in enumerate(self.predecessors) if not before)

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """The steps that nothing waits for."""
        return tuple(step for step, following in enumerate(self.successors) if not following)

    @cached_property
    def threads(self) -> tuple[tuple[int, ...], ...]:
        """A minimum chain cover: the steps split into as few ordered threads as possible, each in order."""
        edges = order.reduction_edges(self.successors, self.descendants)
        return tuple(order.minimum_chain_cover(self.descendants, edges))

    def chain_cover(self) -> tuple[tuple[int, ...], ...]:
        """Return :attr:`threads`."""
        return self.threads

    @property
    def width(self) -> int:
        """The largest number of steps of which none must come before another (= the number of threads)."""
        return len(self.threads)

    # -- making another ------------------------------------------------------------------------------------

    def with_edges(self, confidence: Mapping[tuple[int, int], float]) -> FlowGraph:
        """Return the graph with other edges, each with its confidence."""
        return replace(self, edges=tuple(confidence), confidences=tuple(confidence.values()))

    def with_confidence(self, confidence: Mapping[tuple[int, int], float]) -> FlowGraph:
        """Return the graph with these confidences of its edges, by pairs of step indices; others stay."""
        for edge in confidence.keys() - self.confidence.keys():
            raise GraphError(f"there is no edge {quoted(edge)} to give a confidence to")
        return self.with_edges({**self.confidence, **confidence})

    def _by_level(
        self, edges_of: Callable[[order.Adjacency, Sequence[int]], Iterable[tuple[int, int]]], own: bool = False
    ) -> FlowGraph:
        """Return the graph of the edges that ``edges_of`` finds when the surest edges are there, then the next, ….

        It is given the successors and the descendants of the steps. With ``own``, an edge counts only where it is as
        sure as the least sure ones that are there.
        """
        if not self.confidences:
            return self._in_same_order(dict.fromkeys(edges_of(self.successors, self.descendants), 1.0))
        found: dict[tuple[int, int], float] = {}
        for level in sorted(set(self.confidences), reverse=True):
            following = order.adjacency((edge for edge, c in self.confidence.items() if c >= level), len(self))
            for edge in edges_of(following, order.reachable(following, self.topological_order)):
                if not own or self.confidence[edge] == level:
                    found.setdefault(edge, level)
        return self._in_same_order(found)

    def _in_same_order(self, confidence: Mapping[tuple[int, int], float]) -> FlowGraph:
        """Return the graph with other edges that imply the same order: what was checked need not be checked again."""
        ordered = dict(sorted(confidence.items()))
        made = object.__new__(type(self))
        vars(made).update({field.name: getattr(self, field.name) for field in fields(self)})
        vars(made)["edges"] = tuple(ordered)
        vars(made)["confidences"] = tuple(ordered.values()) if min(ordered.values(), default=1.0) < 1.0 else ()
        vars(made).update(topological_order=self.topological_order, descendants=self.descendants)
        return made

    def transitive_reduction(self) -> FlowGraph:
        """Return the same order with as few edges as possible: an edge goes where surer ones, or equals, imply it."""
        return self._by_level(order.reduction_edges, own=True)

    def transitive_closure(self) -> FlowGraph:
        """Return the same order with an edge for every pair (a, b) with a before b, as sure as what implies it."""
        return self._by_level(lambda successors, descendants: order.closure_edges(descendants))

    def without(self, steps: Iterable[StepReference]) -> FlowGraph:
        """Return the graph without the given steps; their predecessors now come before their successors.

        Parameters
        ----------
        steps : iterable of int or str
            Steps by index or id.
        """
        removed = set(resolve_all(steps, self._index_of))
        kept = [step for step in range(len(self)) if step not in removed]
        if not kept:
            raise GraphError("nothing would be left of the flow graph without these steps")
        # The nearest kept steps before each step, looking through removed ones.
        before = [0] * len(self)
        for step in self.topological_order:
            for previous in self.predecessors[step]:
                before[step] |= before[previous] if previous in removed else 1 << previous
        ids, sure = self.ids, dict(self.transitive_closure().confidence) if self.confidences else {}
        # Of a group of which one branch is left with steps, these are no alternatives any more.
        groups = [[[ids[s] for s in branch if s not in removed] for branch in group] for group in self.alternatives]
        groups = [branches for group in groups if len(branches := [branch for branch in group if branch]) > 1]
        left, optional = [self.steps[step] for step in kept], [ids[step] for step in self.optional if step in kept]
        sure |= self.confidence  # an edge of its own is as sure as it was
        edges = [(ids[a], ids[b], sure.get((a, b), 1.0)) for b in kept for a in order.bits(before[b])]
        return FlowGraph.from_edges(left, edges, self.title, optional=optional, alternatives=groups)

    def relabel(self, labels: Mapping[str, str | Step]) -> FlowGraph:
        """Return the graph with new names.

        Parameters
        ----------
        labels : mapping of str to str or Step
            From the id of a step to its new id, or to the step (id and text) in its place. Others stay.
        """
        steps = list(self.steps)
        for old, new in labels.items():
            index = self.index(old)
            steps[index] = new if isinstance(new, Step) else Step(new, self.steps[index].text)
        return replace(self, steps=tuple(steps))

    # -- formats: each lives in a module of its own --------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FlowGraph:
        """Read a flow graph; the suffix names the format: .json, .flow or .txt (text), .dot or .gv."""
        return formats.load(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the flow graph, whole or not at all; the suffix names the format as in :meth:`load`."""
        formats.save(self, path)

    @classmethod
    def from_json(cls, value: Any, *, source: str = "flow graph") -> FlowGraph:
        """Read the parsed JSON document ``value``; ``source`` is what messages call it."""
        return formats.from_json(value, source)

    def to_json(self) -> dict[str, Any]:
        """Return the flow graph as a JSON document (format ``graph2vid-flow``)."""
        return formats.to_json(self)

    @classmethod
    def from_text(cls, text: str, *, source: str = "flow text") -> FlowGraph:
        """Read the text notation (see :mod:`graph2vid.flow.text_format`)."""
        return text_format.from_text(text, source)

    def to_text(self) -> str:
        """Write the text notation (see :mod:`graph2vid.flow.text_format`)."""
        return text_format.to_text(self)

    @classmethod
    def from_dot(cls, text: str, *, source: str = "DOT text") -> FlowGraph:
        """Read a Graphviz digraph; labels become texts."""
        return dot_format.from_dot(text, source)

    def to_dot(self) -> str:
        """Write a Graphviz digraph; texts become labels."""
        return dot_format.to_dot(self)

    @classmethod
    def from_networkx(cls, graph: Any) -> FlowGraph:
        """Read a networkx digraph; the node attribute ``text`` (or ``label``) is the text of a step."""
        return formats.from_networkx(graph)

    def to_networkx(self) -> Any:
        """Return a :class:`networkx.DiGraph` over the ids, with the node attribute ``text``."""
        return formats.to_networkx(self)

    def plot(self, ax: Axes | None = None, *, order: Sequence[int] = ()) -> Axes:
        """Draw the graph in a figure (matplotlib), in layers from top to bottom, each step in its colour.

        Edges that others imply are left out; optional steps and edges that are not certain are dashed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        order : sequence of int, optional
            Steps in an order in which they were done, which is numbered at the boxes.
        """
        from graph2vid.flow import flow_plot

        return flow_plot.plot_flow(self, ax, order=order)

    def to_svg(self) -> str:
        """Return a drawing as a self-contained SVG document."""
        from graph2vid.flow import flow_drawing

        return flow_drawing.to_svg(self)

    _repr_svg_ = to_svg


# The formats build flow graphs, so that they come after the class.
from graph2vid.flow import dot_format, formats, mine, text_format  # noqa: E402
