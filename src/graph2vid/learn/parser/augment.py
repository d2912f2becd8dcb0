"""Variants of annotated recipes: other ingredients, hidden words, and tags with mistakes like those of the tagger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from graph2vid.text.learned.scheme import CLASSES, Span, spans_of
from graph2vid.text.learned.words import stem

FOOD = "F"
MADE = frozenset({"f-eq", "f-part-of"})
DROPPED_OF_MISTAKES = 0.4

Edge: TypeAlias = tuple[int, int, str]


class Annotated(Protocol):
    """What training needs of an annotated recipe."""

    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def edges(self) -> tuple[Edge, ...]: ...


@dataclass(frozen=True)
class Example:
    """A recipe as it is trained on; ``tags`` are true, ``shown`` those on which the edges are found."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    shown: tuple[str, ...]
    edges: tuple[Edge, ...]


class Augmenter:
    """Makes variants of recipes.

    Parameters
    ----------
    recipes : sequence of Annotated
        All that are trained on; ingredients are exchanged among them.
    generator : numpy.random.Generator
    swap : float
        How many ingredients of every second recipe are exchanged, for others with as many words.
    mistakes : float
        How many entities lose or change their tag.
    """

    def __init__(
        self, recipes: Sequence[Annotated], generator: np.random.Generator, swap: float = 0.4, mistakes: float = 0.1
    ) -> None:
        self._generator, self._swap, self._mistakes = generator, swap, mistakes
        self._raw = [_raw_ingredients(recipe) for recipe in recipes]
        self._names: dict[int, list[tuple[str, ...]]] = {}
        for recipe, raw in zip(recipes, self._raw, strict=True):
            for span in raw:
                self._names.setdefault(span.end - span.start, []).append(recipe.tokens[span.start : span.end])
        self._recipes = recipes

    def variant(self, number: int) -> Example:
        """Return a variant of a recipe."""
        recipe = self._recipes[number]
        words = list(recipe.tokens)
        if self._generator.random() < 0.5:
            chosen: dict[tuple[str, ...], tuple[str, ...]] = {}
            for span in self._raw[number]:
                name = tuple(stem(word) for word in recipe.tokens[span.start : span.end])
                if name not in chosen:
                    others = self._names[len(name)]
                    swapped = self._generator.random() < self._swap
                    old = recipe.tokens[span.start : span.end]
                    chosen[name] = others[self._generator.integers(len(others))] if swapped else old
                words[span.start : span.end] = chosen[name]
        return Example(tuple(words), recipe.tags, self._with_mistakes(recipe.tags), recipe.edges)

    def _with_mistakes(self, tags: tuple[str, ...]) -> tuple[str, ...]:
        found = list(tags)
        for start, end, _ in spans_of(tags):
            if self._generator.random() >= self._mistakes:
                continue
            if self._generator.random() < DROPPED_OF_MISTAKES:
                found[start:end] = ["O"] * (end - start)
            else:
                kind = CLASSES[self._generator.integers(len(CLASSES))]
                found[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
        return tuple(found)


def as_it_is(recipe: Annotated) -> Example:
    """Return a recipe as an example, unchanged."""
    return Example(recipe.tokens, recipe.tags, recipe.tags, recipe.edges)


def _raw_ingredients(recipe: Annotated) -> list[Span]:
    """Return the foods that nothing in the recipe made: their names can be exchanged without touching the flow."""
    foods = [span for span in spans_of(recipe.tags) if span.kind == FOOD]
    made = {head for _, head, label in recipe.edges if label in MADE}

    def name(span: Span) -> tuple[str, ...]:
        return tuple(stem(word) for word in recipe.tokens[span.start : span.end])

    names_made = {name(span) for span in foods if span.start in made}
    return [span for span in foods if name(span) not in names_made]
