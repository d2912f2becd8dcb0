"""Offsets of the labels' scores, chosen on recipes that were not trained on.

Training makes rare labels too shy. One number per label corrects that: those are taken that make the labelled edges
best, with true tags and with predicted ones together. A number that is far from 0 has to earn it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graph2vid._transformer import Floats
from graph2vid.learn.parser.augment import Annotated
from graph2vid.text.learned.learned_parser import RecipeModel, Scored, choose_edges
from graph2vid.text.learned.scheme import LABELS, Span, spans_of

STEPS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)
PASSES = 3
PRICE = 0.15
"""F1, in percent, that an offset of 1 must bring; the price grows with its square."""

Edges = set[tuple[tuple[int, int], tuple[int, int], str]]


@dataclass(frozen=True)
class _Case:
    """A recipe with its tags, true or predicted: what was scored, and the edges that are right."""

    spans: list[Span]
    scored: list[Scored]
    right: Edges

    def chosen(self, offsets: Floats) -> Edges:
        moved = [part._replace(scores=part.scores._replace(label=part.scores.label + offsets)) for part in self.scored]
        return {
            (self.spans[edge.dependent][:2], self.spans[edge.head][:2], edge.label)
            for edge in choose_edges(self.spans, moved)
        }


def tuned_offsets(model: RecipeModel, recipes: Sequence[Annotated]) -> Floats:
    """Return what to add to the score of each label: float32 [labels]."""
    groups = [list(_cases(model, recipes, predicted)) for predicted in (False, True)]

    def worth(offsets: Floats) -> float:
        return sum(_f1(group, offsets) for group in groups) - PRICE * float((offsets**2).sum())

    best = np.zeros(len(LABELS), dtype=np.float32)
    value = worth(best)
    for _ in range(PASSES):
        before = value
        for label in range(len(LABELS)):
            for step in STEPS:
                trial = best.copy()
                trial[label] += step
                if (found := worth(trial)) > value:
                    best, value = trial, found
        if value == before:
            break
    return best


def _cases(model: RecipeModel, recipes: Sequence[Annotated], predicted: bool) -> Iterator[_Case]:
    for recipe in recipes:
        words = list(recipe.tokens)
        true = {span.start: span[:2] for span in spans_of(list(recipe.tags))}
        spans = spans_of(model.tag([words])[0] if predicted else list(recipe.tags))
        right = {
            (true.get(dependent, (dependent, dependent + 1)), true.get(head, (head, head + 1)), label)
            for dependent, head, label in recipe.edges
        }
        yield _Case(spans, model.score(words, spans, model.read(words)), right)


def _f1(cases: Sequence[_Case], offsets: Floats) -> float:
    """Return the F1 of labelled edges in percent."""
    hits = found = wanted = 0
    for case in cases:
        chosen = case.chosen(offsets)
        hits += len(chosen & case.right)
        found += len(chosen)
        wanted += len(case.right)
    return 200 * hits / max(found + wanted, 1)
