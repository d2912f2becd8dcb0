"""Annotated recipes as examples: variants with other ingredients or wrong tags, and batches of them as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from graph2vid.text import learned

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
                name = _name(recipe, span)
                if name not in chosen:
                    others = self._names[len(name)]
                    swapped = self._generator.random() < self._swap
                    old = recipe.tokens[span.start : span.end]
                    chosen[name] = others[self._generator.integers(len(others))] if swapped else old
                words[span.start : span.end] = chosen[name]
        return Example(tuple(words), recipe.tags, self._with_mistakes(recipe.tags), recipe.edges)

    def _with_mistakes(self, tags: tuple[str, ...]) -> tuple[str, ...]:
        found = list(tags)
        for start, end, _ in learned.spans_of(tags):
            if self._generator.random() >= self._mistakes:
                continue
            if self._generator.random() < DROPPED_OF_MISTAKES:
                found[start:end] = ["O"] * (end - start)
            else:
                kind = learned.CLASSES[self._generator.integers(len(learned.CLASSES))]
                found[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
        return tuple(found)


def _raw_ingredients(recipe: Annotated) -> list[learned.Span]:
    """Return the foods that nothing in the recipe made: their names can be exchanged without touching the flow."""
    foods = [span for span in learned.spans_of(recipe.tags) if span.kind == FOOD]
    made = {head for _, head, label in recipe.edges if label in MADE}
    names_made = {_name(recipe, span) for span in foods if span.start in made}
    return [span for span in foods if _name(recipe, span) not in names_made]


def _name(recipe: Annotated, span: learned.Span) -> tuple[str, ...]:
    return tuple(learned.stem(word) for word in recipe.tokens[span.start : span.end])


Batch: TypeAlias = dict[str, Tensor]

NO_LABEL = -1
_TAG, _LABEL, _KIND = (
    {name: number for number, name in enumerate(names)} for names in (learned.TAGS, learned.LABELS, learned.CLASSES)
)


def collate(
    examples: Sequence[Example],
    pieces: learned.Pieces,
    shape: learned.Shape,
    hidden_words: float = 0.0,
    generator: np.random.Generator | None = None,
) -> Batch:
    """Return a batch; what is too long for the network is cut off.

    Parameters
    ----------
    examples : sequence of Example
    pieces : Pieces
    shape : Shape
    hidden_words : float
        The share of words that is hidden behind a mask.
    generator : numpy.random.Generator, optional
        Says which; needed where some are hidden.

    Returns
    -------
    dict of str to Tensor
        ``pieces`` and ``present`` (batch, pieces); ``word_pool`` (batch, words, pieces); ``tags`` and ``is_word``
        (batch, words); ``span_pools`` (batch, 4, entities, words); ``kinds`` and ``is_entity`` (batch, entities);
        ``features`` (batch, entities, entities, features); ``labels`` (batch, entities, entities), the label of the
        edge from the first to the second or ``NO_LABEL``.
    """
    rows = [_row(example, pieces, shape, hidden_words, generator) for example in examples]
    found = {}
    for name, first in rows[0].items():
        size = np.max([row[name].shape for row in rows], axis=0)
        padded = np.full((len(rows), *size), NO_LABEL if name == "labels" else 0, dtype=first.dtype)
        for number, row in enumerate(rows):
            padded[number][tuple(map(slice, row[name].shape))] = row[name]
        found[name] = torch.from_numpy(padded)
    return found


def _row(
    example: Example,
    pieces: learned.Pieces,
    shape: learned.Shape,
    hidden_words: float,
    generator: np.random.Generator | None,
) -> dict[str, np.ndarray]:
    numbers, groups = [pieces.begin], []
    for word in example.words:
        of_word = pieces.of(word)
        if len(numbers) + len(of_word) >= shape.positions:
            break
        if generator is not None and generator.random() < hidden_words:
            of_word = (pieces.mask,) * len(of_word)
        groups.append(range(len(numbers), len(numbers) + len(of_word)))
        numbers.extend(of_word)
    numbers.append(pieces.end)
    count = len(groups)
    words = example.words[:count]
    sentences = learned.sentence_numbers(words)
    spans = [span for span in learned.spans_of(example.shown) if span.end <= count]
    place = {span.start: number for number, span in enumerate(spans)}
    labels = np.full((len(spans), len(spans)), NO_LABEL, dtype=np.int64)
    for dependent, head, label in example.edges:
        if dependent in place and head in place and label in _LABEL:
            labels[place[dependent], place[head]] = _LABEL[label]
    return {
        "pieces": np.array(numbers, dtype=np.int64),
        "present": np.ones(len(numbers), dtype=bool),
        "word_pool": learned.mean_pool(groups, len(numbers)),
        "tags": np.array([_TAG[tag] for tag in example.tags[:count]], dtype=np.int64),
        "is_word": np.ones(count, dtype=bool),
        "span_pools": learned.span_pools(spans, count),
        "kinds": np.array([_KIND[span.kind] for span in spans], dtype=np.int64),
        "is_entity": np.ones(len(spans), dtype=bool),
        "features": learned.pair_features(words, sentences, spans).reshape(len(spans), len(spans), len(learned.SIZES)),
        "labels": labels,
    }
