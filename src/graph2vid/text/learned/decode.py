"""From scores to tags and edges: the best valid tags, and heads of entities without a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graph2vid.text.learned.network import EdgeScores
from graph2vid.text.learned.scheme import LABELS, SAME_THING, TAGS

# Settled by cross-validation on the training recipes; the results hardly change around them.
MOST_HEADLESS = 0.95
"""An entity stays without a head when that is more probable than this."""
FURTHER_HEAD = 0.65
"""A second head needs this probability."""
SAME_SHARE = 0.6
"""How much the view from the head ("what made me?") counts beside that from the dependent ("where do I go?")."""

_IMPOSSIBLE = -1e4
_SAME = [LABELS.index(label) for label in SAME_THING]


FORBIDDEN = np.array(
    [[_IMPOSSIBLE * (tag.startswith("I-") and before[1:] != tag[1:]) for tag in TAGS] for before in TAGS],
    dtype=np.float32,
)
"""What to add to the score of going from one tag to another: "I-" goes on only with its own class."""


def best_tags(scores: npt.NDArray[np.float32], transitions: npt.NDArray[np.float32]) -> list[str]:
    """Return the valid tags with the highest sum of scores (Viterbi).

    Parameters
    ----------
    scores : array, shape (words, tags)
    transitions : array, shape (tags, tags)
        From a tag to the one of the next word.
    """
    if not len(scores):
        return []
    steps = transitions + FORBIDDEN
    best = scores[0] + FORBIDDEN[TAGS.index("O")]
    came = np.zeros(scores.shape, dtype=np.intp)
    for word in range(1, len(scores)):
        paths = best[:, None] + steps
        came[word] = paths.argmax(axis=0)
        best = paths.max(axis=0) + scores[word]
    found = [int(best.argmax())]
    for word in range(len(scores) - 1, 0, -1):
        found.append(int(came[word, found[-1]]))
    return [TAGS[tag] for tag in reversed(found)]


class Candidate(NamedTuple):
    """A possible edge between entities; higher scores are settled first."""

    score: float
    dependent: int
    head: int
    label: str


def candidates(scores: EdgeScores, wanted: Iterable[int]) -> list[Candidate]:
    """Return the edges that the scores speak for: the best head of each wanted dependent, and further ones."""
    count = len(scores.arc)
    if count < 2:
        return []
    headless, best, single = _probabilities(scores)
    found = []
    for dependent in wanted:
        label = best[dependent].argmax(axis=-1)
        value = best[dependent].max(axis=-1)
        primary = int(value.argmax())
        if headless[dependent] <= MOST_HEADLESS:
            found.append(Candidate(1 + float(value[primary]), dependent, primary, LABELS[label[primary]]))
        strong = single[dependent].max(axis=-1)
        for head in np.flatnonzero(strong > FURTHER_HEAD):
            if head != primary:
                name = LABELS[single[dependent, head].argmax()]
                found.append(Candidate(float(strong[head]), dependent, int(head), name))
    return found


def best_links(scores: EdgeScores, wanted: Iterable[int], units: Sequence[int]) -> dict[int, Candidate]:
    """Return for each unit of text (an instruction) the best edge from its wanted dependents into a later unit."""
    found: dict[int, Candidate] = {}
    if len(scores.arc) < 2:
        return found
    _, best, _ = _probabilities(scores)
    numbers = np.asarray(units)
    for dependent in wanted:
        later = np.flatnonzero(numbers > numbers[dependent])
        if not len(later):
            continue
        values = best[dependent, later]
        head, label = np.unravel_index(int(values.argmax()), values.shape)
        score, unit = float(values[head, label]), int(numbers[dependent])
        if unit not in found or score > found[unit].score:
            found[unit] = Candidate(score, dependent, int(later[head]), LABELS[label])
    return found


def _probabilities(
    scores: EdgeScores,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return how probable it is that a dependent has no head, its best edge, and each edge by itself, with labels."""
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
    return 1 - heads.sum(axis=1), best, single


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
