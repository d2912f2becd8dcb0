"""The tSort graph and a video's costs as automata for kaldifst, whose best path is our best alignment."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.cases import Floats
from graph2vid.tsort import TSortGraph


class Automata:
    """A procedure as an automaton over labels of clips, composed with one video after the other.

    Labels are steps from 1; background is the number of steps plus 1; 0 is no clip at all. With
    ``contiguous=False`` the automaton is the tSort graph itself with a start. With ``contiguous=True`` each ideal
    has a node of its own, where background happens and from which the next step begins.

    Parameters
    ----------
    tsort : TSortGraph
        The procedure.
    contiguous : bool
        As for :func:`graph2vid.alignment.align`.
    """

    def __init__(self, tsort: TSortGraph, contiguous: bool) -> None:
        self._fst = import_module("kaldifst")
        self._background = tsort.n_steps + 1
        self._graph = self._contiguous(tsort) if contiguous else self._paper(tsort)
        self._fst.arcsort(self._graph, "ilabel")
        # Whichever was quickest of those that kaldifst has and that suit the graph.
        self._filter = "alt_sequence" if contiguous else "auto"

    def _new(self, nodes: int) -> Any:
        made = self._fst.StdVectorFst()
        made.reserve_states(nodes)
        for _ in range(nodes):
            made.add_state()
        made.start = 0
        return made

    def _arc(self, automaton: Any, source: int, label: int, target: int, weight: float = 0.0) -> None:
        automaton.add_arc(source, self._fst.StdArc(label, label, weight, target))

    def _paper(self, tsort: TSortGraph) -> Any:
        graph = self._new(1 + tsort.n_states)
        starts, steps, origins = (
            tsort.state_start.tolist(),
            tsort.state_step.tolist(),
            tsort.state_from.tolist(),
        )
        self._arc(graph, 0, self._background, 0)
        for state in range(tsort.n_states):
            label = steps[state] + 1
            self._arc(graph, 1 + state, label, 1 + state)
            self._arc(graph, 1 + state, self._background, 1 + state)
            origin = origins[state]
            before = range(1 + starts[origin], 1 + starts[origin + 1]) if origin else range(1)
            for node in before:
                self._arc(graph, node, label, 1 + state)
        for state in range(starts[-2], starts[-1]):
            graph.set_final(1 + state, 0.0)
        return graph

    def _contiguous(self, tsort: TSortGraph) -> Any:
        graph = self._new(tsort.n_ideals + tsort.n_states)
        starts, steps, origins = (
            tsort.state_start.tolist(),
            tsort.state_step.tolist(),
            tsort.state_from.tolist(),
        )
        for ideal in range(tsort.n_ideals):
            self._arc(graph, ideal, self._background, ideal)
            for state in range(starts[ideal], starts[ideal + 1]):
                label, node = steps[state] + 1, tsort.n_ideals + state
                self._arc(graph, origins[state], label, node)
                self._arc(graph, node, label, node)
                self._arc(graph, node, 0, ideal)
        graph.set_final(tsort.n_ideals - 1, 0.0)
        return graph

    def acceptor(self, match: Floats, drop: Floats) -> Any:
        """Return the costs of a video as an automaton: a line of clips, with an arc for each label."""
        line = self._new(len(drop) + 1)
        for clip, (shows, rests) in enumerate(zip(match.T.tolist(), drop.tolist(), strict=True)):
            for step, cost in enumerate(shows):
                self._arc(line, clip, step + 1, clip + 1, cost)
            self._arc(line, clip, self._background, clip + 1, rests)
        line.set_final(len(drop), 0.0)
        self._fst.arcsort(line, "olabel")
        return line

    def best_path(self, acceptor: Any) -> Any:
        """Compose a video with the procedure and return the best path, an automaton of one line."""
        composed = self._fst.compose(
            acceptor, self._graph, match_side="right", compose_filter=self._filter, connect=False
        )
        return self._fst.shortest_path(composed)

    def align(self, match: Floats, drop: Floats) -> Any:
        """Return the best path of a video, from its costs."""
        return self.best_path(self.acceptor(match, drop))

    def read(self, path: Any) -> tuple[float, list[int]]:
        """Return the cost of a best path and its labels, steps from 0 and -1 for background."""
        _, labels, _, weight = self._fst.get_linear_symbol_sequence(path)
        return weight.value, [-1 if label == self._background else label - 1 for label in labels]
