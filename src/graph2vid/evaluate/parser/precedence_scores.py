"""Precedences that parsers find in how-tos of many domains, beside the written order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph2vid.datasets import OrderedText
from graph2vid.evaluate.counts import Counts, total
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.graph_scores import Text, detokenise, score_graphs
from graph2vid.evaluate.report import Table, percent
from graph2vid.flow import FlowGraph

ALL = "all"


def how_to_texts(texts: Sequence[OrderedText]) -> list[Text]:
    """Return how-tos with their true graphs."""
    found = []
    for text in texts:
        steps = tuple(detokenise(step.split()) for step in text.steps)
        found.append(Text(steps, FlowGraph.from_edges(steps, text.before, text.title), text.title))
    return found


def precedence_scores(
    graphs: ParsedGraphs, texts: Sequence[OrderedText], progress: Callable[[str, int, int], None] | None = None
) -> dict[str, dict[str, Counts]]:
    """Count the precedences of every parser that is available, by domain and over all texts.

    Returns
    -------
    dict of str to dict of str to Counts
        By domain (``all`` last) and parser: micro counts of the pairs in the transitive closure.
    """
    scores = score_graphs(graphs, how_to_texts(texts), progress)
    domains = [*sorted({text.domain for text in texts} - {""}), ALL]
    return {
        domain: {
            parser: total(
                counts for text, counts in zip(texts, found.precedences, strict=True) if domain in (ALL, text.domain)
            )
            for parser, found in scores.items()
        }
        for domain in domains
    }


def precedence_json(found: Mapping[str, Mapping[str, Counts]]) -> dict[str, Any]:
    """Return precision, recall and F1 by domain and parser."""
    return {
        domain: {
            parser: {"p": counts.precision, "r": counts.recall, "f1": counts.f1} for parser, counts in of_parser.items()
        }
        for domain, of_parser in found.items()
    }


def precedence_table(title: str, note: str, found: Mapping[str, Mapping[str, Counts]], order: Sequence[str]) -> Table:
    """Return a table with a row per domain and parser."""
    rows = []
    for domain, of_parser in found.items():
        for parser in sorted(of_parser, key=order.index):
            counts = of_parser[parser]
            shares = (counts.precision, counts.recall, counts.f1)
            rows.append((domain, parser, *(percent(100 * share) for share in shares), str(counts.gold)))
    return Table(title, note, ("domain", "parser", "precision", "recall", "F1", "annotated"), tuple(rows), words=2)
