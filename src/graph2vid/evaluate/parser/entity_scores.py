"""Entities and the edges between them, against the annotated corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from graph2vid.datasets import ENTITY_CLASSES, Recipe
from graph2vid.evaluate.counts import Counts, compare, f1_interval, total

PRONOUNS = frozenset({"it", "them", "they", "this", "these", "that", "those", "its", "their"})
ACTIONS = frozenset({"Ac", "Ac2", "Af", "At"})
SAME_FOOD = "f-eq"
TARGET = "t"

Edge: TypeAlias = tuple[int, int, str]
"""Dependent token, head token, label."""

Span: TypeAlias = tuple[int, int, str]
"""First token, end (not included), class."""


class EntityModel(Protocol):
    """What is evaluated: a tagger, and a parser of the edges between tagged entities."""

    def tag(self, recipes: list[list[str]], /) -> list[list[str]]:
        """Return the BIO tags of each recipe's tokens."""

    def edges(self, tokens: list[str], tags: list[str], /) -> list[Edge]:
        """Return the edges between first tokens of entities; of a dependent's heads the first is its primary one."""


def entities(tags: Sequence[str]) -> list[Span]:
    """Return the entities of BIO tags; an "I-" that goes on with nothing begins one."""
    found: list[Span] = []
    for at, tag in enumerate(tags):
        mark, _, kind = tag.partition("-")
        if mark == "I" and found and found[-1][1:] == (at, kind):
            found[-1] = (found[-1][0], at + 1, kind)
        elif mark in ("B", "I"):
            found.append((at, at + 1, kind))
    return found


@dataclass
class EdgeScores:
    """How well edges were found, one entry per recipe.

    Attributes
    ----------
    labelled, unlabelled : list of Counts
        An edge is right when both entities (exact spans) agree, and the label.
    coreference : list of Counts
        Of the labelled edges those that say "the same food" of a pronoun.
    ellipsis : list of Counts
        Of the labelled edges those that make an action the target of another: what it gave goes unnamed.
    labels : dict of str to Counts
        Of the labelled edges, by label.
    tokens, attached, labelled_attached : int
        All tokens, those whose primary head is right (0 where there is none), and those whose label is right too.
    """

    labelled: list[Counts] = field(default_factory=list)
    unlabelled: list[Counts] = field(default_factory=list)
    coreference: list[Counts] = field(default_factory=list)
    ellipsis: list[Counts] = field(default_factory=list)
    labels: dict[str, Counts] = field(default_factory=dict)
    tokens: int = 0
    attached: int = 0
    labelled_attached: int = 0

    def add(self, recipe: Recipe, tags: Sequence[str], edges: Sequence[Edge]) -> None:
        """Count the edges that were found on a recipe with these tags."""
        gold = _Edges(recipe.tokens, recipe.tags, recipe.edges)
        predicted = _Edges(recipe.tokens, tags, edges)

        def counts_of(member: Callable[[_Edges, Edge], bool]) -> Counts:
            return compare(predicted.spans(member), gold.spans(member))

        self.labelled.append(counts_of(lambda *_: True))
        self.unlabelled.append(compare(_ends(predicted), _ends(gold)))
        self.coreference.append(counts_of(_Edges.is_pronoun))
        self.ellipsis.append(counts_of(_Edges.is_ellipsis))
        for label in sorted({edge[2] for edge in (*recipe.edges, *edges)}):
            counts = counts_of(lambda _, edge, label=label: edge[2] == label)  # type: ignore[misc]
            self.labels[label] = self.labels.get(label, Counts()) + counts
        true_heads, heads = _primary(recipe.edges), _primary(edges)
        none = (-1, "")
        for token in range(len(recipe.tokens)):
            true_head, head = true_heads.get(token, none), heads.get(token, none)
            self.attached += true_head[0] == head[0]
            self.labelled_attached += true_head == head
        self.tokens += len(recipe.tokens)

    def to_json(self) -> dict[str, Any]:
        """Return the scores as shares."""
        return total(self.labelled).to_json() | {
            "interval": list(f1_interval(self.labelled)),
            "unlabelled": total(self.unlabelled).to_json(),
            "uas": self.attached / self.tokens,
            "las": self.labelled_attached / self.tokens,
            "tokens": self.tokens,
            "coreference": total(self.coreference).to_json(),
            "ellipsis": total(self.ellipsis).to_json(),
            "labels": {label: counts.to_json() for label, counts in sorted(self.labels.items())},
        }


class _Edges:
    """Edges with the entities that they join."""

    def __init__(self, tokens: Sequence[str], tags: Sequence[str], edges: Sequence[Edge]) -> None:
        self.tokens = tokens
        self.edges = edges
        self.span_at = {span[0]: span for span in entities(tags)}

    def span(self, token: int) -> Span:
        return self.span_at.get(token, (token, token + 1, ""))

    def spans(self, member: Callable[[_Edges, Edge], bool]) -> set[tuple[tuple[int, int], tuple[int, int], str]]:
        """Return the wanted edges, their entities by what they cover."""
        return {(self.span(edge[0])[:2], self.span(edge[1])[:2], edge[2]) for edge in self.edges if member(self, edge)}

    def is_pronoun(self, edge: Edge) -> bool:
        first, end, _ = self.span(edge[1])
        return edge[2] == SAME_FOOD and all(word.lower() in PRONOUNS for word in self.tokens[first:end])

    def is_ellipsis(self, edge: Edge) -> bool:
        return edge[2] == TARGET and {self.span(edge[0])[2], self.span(edge[1])[2]} <= ACTIONS


def _ends(edges: _Edges) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    return {spans[:2] for spans in edges.spans(lambda *_: True)}


def _primary(edges: Sequence[Edge]) -> dict[int, tuple[int, str]]:
    """Return the first head of each dependent, and its label."""
    found: dict[int, tuple[int, str]] = {}
    for dependent, head, label in edges:
        found.setdefault(dependent, (head, label))
    return found


@dataclass
class TagScores:
    """How well entities were found, one entry per recipe: an entity is right when its span and class are.

    Attributes
    ----------
    overall : list of Counts
    classes : dict of str to Counts
    """

    overall: list[Counts] = field(default_factory=list)
    classes: dict[str, Counts] = field(default_factory=lambda: {name: Counts() for name in ENTITY_CLASSES})

    def add(self, recipe: Recipe, tags: Sequence[str]) -> None:
        """Count the entities of a recipe."""
        predicted, gold = entities(tags), entities(recipe.tags)
        self.overall.append(compare(predicted, gold))
        for name in self.classes:
            of_class = [[span for span in spans if span[2] == name] for spans in (predicted, gold)]
            self.classes[name] += compare(*of_class)

    def to_json(self) -> dict[str, Any]:
        """Return the scores as shares."""
        return total(self.overall).to_json() | {
            "interval": list(f1_interval(self.overall)),
            "classes": {name: counts.to_json() for name, counts in self.classes.items()},
        }


@dataclass(frozen=True)
class EntityScores:
    """The tagger, and the edges with true and with predicted tags."""

    tagger: TagScores
    gold_tags: EdgeScores
    predicted_tags: EdgeScores


def score_entities(
    model: EntityModel, recipes: Sequence[Recipe], progress: Callable[[str, int, int], None] | None = None
) -> EntityScores:
    """Evaluate a model of entities and edges on annotated recipes."""
    scores = EntityScores(TagScores(), EdgeScores(), EdgeScores())
    tagged = model.tag([list(recipe.tokens) for recipe in recipes])
    for done, (recipe, tags) in enumerate(zip(recipes, tagged, strict=True), start=1):
        tokens = list(recipe.tokens)
        scores.tagger.add(recipe, tags)
        scores.gold_tags.add(recipe, recipe.tags, model.edges(tokens, list(recipe.tags)))
        scores.predicted_tags.add(recipe, tags, model.edges(tokens, list(tags)))
        if progress is not None:
            progress("entities and edges", done, len(recipes))
    return scores
