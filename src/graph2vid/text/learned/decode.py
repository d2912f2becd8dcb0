"""From scores to tags and edges: the best valid tags, and heads of entities without a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graph2vid.text.learned.integer_layers import native
from graph2vid.text.learned.network_numpy import EdgeScores
from graph2vid.text.learned.words import LABELS, SAME_THING, TAGS

# Settled by cross-validation on the training recipes; the results hardly change around them.
MOST_HEADLESS = 0.95
"""An entity stays without a head when that is more probable than this."""
FURTHER_HEAD = 0.65
"""A second head needs this probability."""
SAME_SHARE = 0.6
"""How much the view from the head ("what made me?") counts beside that from the dependent ("where do I go?")."""

_IMPOSSIBLE = -1e4
_SAME = [LABELS.index(label) for label in SAME_THING]


_UNFIT = [[tag.startswith("I-") and before[1:] != tag[1:] for tag in TAGS] for before in TAGS]
FORBIDDEN = np.float32(_IMPOSSIBLE) * np.array(_UNFIT, dtype=np.float32)
"""What to add to the score of going from one tag to another: "I-" goes on only with its own class."""


def best_tags(scores: npt.NDArray[np.float32], transitions: npt.NDArray[np.float32]) -> list[str]:
    """Return the valid tags with the highest sum of scores (Viterbi).

    Parameters
    ----------
    scores : array, shape (words, tags)
    transitions : array, shape (tags, tags)
        From a tag to the one of the next word.
    """
    steps, start, module = transitions + FORBIDDEN, FORBIDDEN[TAGS.index("O")], native()
    found = _best_path(scores, steps, start) if module is None else module.best_path(scores, steps, start)
    return [TAGS[tag] for tag in found]


def _best_path(
    scores: npt.NDArray[np.float32], steps: npt.NDArray[np.float32], start: npt.NDArray[np.float32]
) -> list[int]:
    if not len(scores):
        return []
    steps = np.ascontiguousarray(steps.T)
    best = scores[0] + start
    came = np.zeros(scores.shape, dtype=np.intp)
    for word in range(1, len(scores)):
        paths = steps + best  # [to, from]
        paths.argmax(axis=1, out=came[word])
        best = paths.max(axis=1)
        best += scores[word]
    found = [int(best.argmax())]
    for word in range(len(scores) - 1, 0, -1):
        found.append(int(came[word, found[-1]]))
    return found[::-1]


class Candidate(NamedTuple):
    """A possible edge between entities; higher scores are settled first."""

    score: float
    dependent: int
    head: int
    label: str


class Probabilities(NamedTuple):
    """What scores of edges mean.

    Attributes
    ----------
    headless : array, shape (entities,)
        That a dependent has no head.
    best : array, shape (entities, entities, labels)
        That this is the best edge of a dependent.
    single : array, shape (entities, entities, labels)
        Of each edge by itself.
    likely, strong : array, shape (entities, entities)
        The highest of ``best`` and of ``single`` over the labels.
    """

    headless: npt.NDArray[np.float32]
    best: npt.NDArray[np.float32]
    single: npt.NDArray[np.float32]
    likely: npt.NDArray[np.float32]
    strong: npt.NDArray[np.float32]


def probabilities(scores: EdgeScores) -> Probabilities:
    """Return probabilities of edges; the view from the dependent and that from the head are brought together."""
    itself = np.eye(len(scores.arc), dtype=bool)
    arc = np.where(itself, _IMPOSSIBLE, scores.arc)
    heads = _softmax_or_none(arc)
    dependents = _softmax_or_none(np.where(itself, _IMPOSSIBLE, scores.same).T).T
    label = np.exp(scores.label - scores.label.max(axis=-1, keepdims=True))
    label /= label.sum(axis=-1, keepdims=True)
    best = heads[..., None] * label
    single = (1 / (1 + np.exp(-np.maximum(arc, -80))))[..., None] * label
    among_same = label[..., _SAME] / np.maximum(label[..., _SAME].sum(axis=-1, keepdims=True), 1e-12)
    from_head = SAME_SHARE * dependents[..., None] * among_same
    for values in (best, single):
        values[..., _SAME] = (1 - SAME_SHARE) * values[..., _SAME] + from_head
    return Probabilities(1 - heads.sum(axis=1), best, single, best.max(axis=-1), single.max(axis=-1))


def candidates(found: Probabilities, wanted: Sequence[int]) -> list[Candidate]:
    """Return the edges that the scores speak for: the best head of each wanted dependent, and further ones."""
    primary = found.likely.argmax(axis=-1)
    is_wanted = np.zeros(len(primary), dtype=bool)
    is_wanted[list(wanted)] = True
    having = np.flatnonzero(is_wanted & (found.headless <= MOST_HEADLESS))
    further = (found.strong > FURTHER_HEAD) & is_wanted[:, None]
    further[np.arange(len(primary)), primary] = False
    edges = _candidates(found.best, found.likely, having, primary[having])
    edges = [edge._replace(score=1 + edge.score) for edge in edges]
    return edges + _candidates(found.single, found.strong, *further.nonzero())


def _candidates(
    values: npt.NDArray[np.float32],
    scores: npt.NDArray[Any],
    dependents: npt.NDArray[np.int64],
    heads: npt.NDArray[np.int64],
) -> list[Candidate]:
    """Return edges with the labels that are highest in ``values``."""
    labels = values[dependents, heads].argmax(axis=-1)
    parts = (array.tolist() for array in (scores[dependents, heads], dependents, heads, labels))
    return [
        Candidate(score, dependent, head, LABELS[label]) for score, dependent, head, label in zip(*parts, strict=True)
    ]


def best_links(found: Probabilities, wanted: Iterable[int], units: Sequence[int]) -> dict[int, Candidate]:
    """Return for each unit of text (an instruction) the best edge from its wanted dependents into a later unit."""
    links: dict[int, Candidate] = {}
    numbers, dependents = np.asarray(units), np.array(list(wanted), dtype=np.int64)
    onwards = np.where(numbers > numbers[:, None], found.likely, -1)
    for edge in _candidates(found.best, onwards, dependents, onwards.argmax(axis=-1)[dependents]):
        unit = units[edge.dependent]
        if edge.score >= 0 and (unit not in links or edge.score > links[unit].score):
            links[unit] = edge
    return links


def _softmax_or_none(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return probabilities along the last axis, with a further choice of score 0 that is left out."""
    most = np.maximum(scores.max(axis=-1, keepdims=True), 0)
    raised = np.exp(scores - most)
    found: npt.NDArray[np.float32] = raised / (raised.sum(axis=-1, keepdims=True) + np.exp(-most))
    return found


class AcyclicEdges:
    """Edges between entities, taken one by one as long as they close no cycle.

    An order in which every dependent comes before its heads is kept up to date (Pearce and Kelly): an edge that agrees
    with it is free, another one is looked into only between the places of its two ends.
    """

    def __init__(self, count: int) -> None:
        self.edges: list[Candidate] = []
        self._place = list(range(count))
        self._heads: list[list[int]] = [[] for _ in range(count)]
        self._dependents: list[list[int]] = [[] for _ in range(count)]

    def take(self, edge: Candidate) -> bool:
        """Take an edge unless it would close a cycle; say whether it was taken."""
        first, last = self._place[edge.head], self._place[edge.dependent]
        if first <= last:
            after = self._reach(edge.head, self._heads, first, last)
            if edge.dependent in after:
                return False
            before = self._reach(edge.dependent, self._dependents, first, last)
            moved = sorted(before, key=self._place.__getitem__) + sorted(after, key=self._place.__getitem__)
            for entity, place in zip(moved, sorted(self._place[entity] for entity in moved), strict=True):
                self._place[entity] = place
        self._heads[edge.dependent].append(edge.head)
        self._dependents[edge.head].append(edge.dependent)
        self.edges.append(edge)
        return True

    def _reach(self, start: int, neighbours: list[list[int]], first: int, last: int) -> set[int]:
        """Return what can be reached from an entity within a stretch of the order."""
        found, waiting = {start}, [start]
        while waiting:
            for entity in neighbours[waiting.pop()]:
                if entity not in found and first <= self._place[entity] <= last:
                    found.add(entity)
                    waiting.append(entity)
        return found

    def take_all(self, edges: Iterable[Candidate]) -> None:
        """Take edges in the order of their scores, the highest first."""
        for edge in sorted(edges, key=lambda edge: (-edge.score, edge.dependent, edge.head)):
            self.take(edge)
