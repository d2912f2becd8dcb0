"""Graphs over sentences or steps: what parsers find, against graphs that people made."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graph2vid.datasets import Dataset, Recipe
from graph2vid.evaluate.counts import Counts, compare, f1_interval, total
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.flow import FlowGraph, bits
from graph2vid.text import Instruction, Procedure, Reason, coarsen

BASELINE = "linear"

_NO_SPACE_BEFORE = re.compile(r" (?=(?:[,.;:!?)\]%]|'s|n't|'re|'ll|'ve|'d)(?: |$))", re.IGNORECASE)
_NO_SPACE_AFTER = re.compile(r"(?<=[(\[]) ")


def detokenise(tokens: Sequence[str]) -> str:
    """Join tokens as one writes them: "Stir ( well ) , season ." → "Stir (well), season."."""
    text = _NO_SPACE_BEFORE.sub("", " ".join(tokens))
    return _NO_SPACE_AFTER.sub("", text)


def sentence_texts(recipe: Recipe) -> tuple[str, ...]:
    """Return the sentences of a recipe as text."""
    return tuple(detokenise(recipe.tokens[first:end]) for first, end in recipe.sentences)


def sentence_graph(recipe: Recipe) -> FlowGraph:
    """Return the annotated graph with one step per sentence, as :func:`graph2vid.text.coarsen.coarsen` makes it.

    A sentence comes before a later one when some entity edge leads from the one into the other.
    """
    sentence_of = [number for number, (first, end) in enumerate(recipe.sentences) for _ in range(first, end)]
    procedure = Procedure(tuple(Instruction(text) for text in sentence_texts(recipe)), recipe.id)
    links = (Reason(sentence_of[start], sentence_of[head], label) for start, head, label in recipe.edges)
    return coarsen(procedure, links, "gold").flow


def precedences(flow: FlowGraph) -> set[tuple[int, int]]:
    """Return every pair of steps of which the first must come before the second."""
    return {(step, later) for step in range(len(flow)) for later in bits(flow.descendants[step])}


@dataclass
class GraphScores:
    """How well graphs agree with true ones, one entry per text.

    Attributes
    ----------
    edges : list of Counts
        Of the transitively reduced graphs.
    precedences : list of Counts
        Of all pairs in their transitive closure.
    """

    edges: list[Counts] = field(default_factory=list)
    precedences: list[Counts] = field(default_factory=list)

    def add(self, flow: FlowGraph, gold: FlowGraph) -> None:
        """Count one graph; soft precedence counts as precedence."""
        flow = replace(flow, confidences=())
        self.edges.append(compare(flow.transitive_reduction().edges, gold.transitive_reduction().edges))
        self.precedences.append(compare(precedences(flow), precedences(gold)))

    def to_json(self, baseline: GraphScores | None = None) -> dict[str, Any]:
        """Return the scores as shares; with a baseline, also the intervals of what is above it."""
        found: dict[str, Any] = {}
        for what in ("edge", "precedence"):
            counts = self._counts(what)
            found |= {f"{what}_{name}": value for name, value in total(counts).to_json().items()}
            found[f"{what}_f1_interval"] = list(f1_interval(counts))
            if baseline is not None:
                below = baseline._counts(what)
                found[f"{what}_f1_above_{BASELINE}"] = {
                    "mean": total(counts).f1 - total(below).f1,
                    "interval": list(f1_interval(counts, below)),
                }
        return found

    def _counts(self, what: str) -> list[Counts]:
        return self.edges if what == "edge" else self.precedences


@dataclass(frozen=True)
class Text:
    """A procedure in words, and the graph that people made of it."""

    texts: tuple[str, ...]
    gold: FlowGraph
    title: str = ""


def score_graphs(
    graphs: ParsedGraphs, texts: Sequence[Text], progress: Callable[[str, int, int], None] | None = None
) -> dict[str, GraphScores]:
    """Compare the graphs of every parser that is available with the true ones."""
    found = {}
    for parser in graphs.parsers:
        scores = GraphScores()
        for done, text in enumerate(texts, start=1):
            flow = graphs.flow(parser, text.texts, text.title)
            if flow is None:
                break
            scores.add(flow, text.gold)
            if progress is not None:
                progress(parser, done, len(texts))
        else:
            found[parser] = scores
    return found


def scores_to_json(found: dict[str, GraphScores]) -> dict[str, dict[str, Any]]:
    """Return the scores of all parsers, each beside the listed order where that is there too."""
    baseline = found.get(BASELINE)
    return {name: scores.to_json(None if scores is baseline else baseline) for name, scores in found.items()}


def recipe_texts(recipes: Sequence[Recipe]) -> list[Text]:
    """Return annotated recipes, one step per sentence."""
    return [Text(sentence_texts(recipe), sentence_graph(recipe)) for recipe in recipes]


def expert_texts(dataset: Dataset, source: str = "expert") -> list[Text]:
    """Return the tasks of a dataset that have a graph of that source, their steps in an order that it allows.

    Such graphs come without a text: the listed order is the topological order that always takes the first node of the
    file that is ready. "Verb-Description" is read as its description, with the verb in front where it has none.
    """
    found = []
    for task in dataset.tasks.values():
        flow = task.flows.get(source)
        if flow is None:
            continue
        order = flow.topological_order
        place = {step: at for at, step in enumerate(order)}
        texts = tuple(_sentence(flow.texts[step]) for step in order)
        edges = [(place[before], place[after]) for before, after in flow.edges]
        found.append(Text(texts, FlowGraph.from_edges(texts, edges, task.title), task.title))
    return found


def _sentence(text: str) -> str:
    verb, dash, description = (part.strip() for part in text.partition("-"))
    if not dash or not verb or not description:
        return text
    has_verb = re.search(rf"\b{re.escape(verb)}", description, re.IGNORECASE)
    sentence = description if has_verb else f"{verb} {description}"
    return sentence[0].upper() + sentence[1:]
