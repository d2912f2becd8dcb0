"""The learned parser: entities and the edges between them by a small network, then one step per instruction."""

from __future__ import annotations

from pathlib import Path

from graph2vid.text.coarsen import coarsen
from graph2vid.text.learned.additions import freed, plain_additions
from graph2vid.text.learned.decode import FORBIDDEN
from graph2vid.text.learned.learned_parser import RecipeModel, Scored, choose_edges
from graph2vid.text.learned.network_numpy import Network, Shape, mean_pool, span_pools
from graph2vid.text.learned.pairs import SIZES, pair_features
from graph2vid.text.learned.tensors import Tensors, quantise, read_safetensors
from graph2vid.text.learned.words import (
    BEGIN,
    CLASSES,
    END,
    LABELS,
    MASK,
    SAME_THING,
    SENTENCE_ENDS,
    TAGS,
    UNKNOWN,
    Pieces,
    Span,
    sentence_numbers,
    spans_of,
    stem,
    words_of,
)
from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph, Parse, Procedure, Reason

__all__ = [
    "BEGIN",
    "CLASSES",
    "END",
    "FORBIDDEN",
    "LABELS",
    "MASK",
    "SAME_THING",
    "SIZES",
    "TAGS",
    "UNKNOWN",
    "Network",
    "Pieces",
    "RecipeModel",
    "Scored",
    "Shape",
    "Span",
    "Tensors",
    "choose_edges",
    "mean_pool",
    "pair_features",
    "parse_by_model",
    "quantise",
    "read_safetensors",
    "sentence_numbers",
    "span_pools",
    "spans_of",
    "stem",
]

_LONGEST_WORDS = 60
_MOST_CHARACTERS = 20_000
"""Of an enormous instruction so much is read."""


def parse_by_model(procedure: Procedure, *, weights: str | Path | None = None) -> Parse:
    """Find the flow graph of a procedure with the learned parser.

    The network was trained on English recipes. On other how-tos it finds most actions and things; in other languages
    it finds little that makes sense, and still gives a graph.

    Parameters
    ----------
    procedure : Procedure
    weights : path, optional
        What ``graph2vid train parser`` made; by default the weights that come with graph2vid.

    Returns
    -------
    Parse
        With the entity graph; the rule behind an edge is the label between two entities of the corpus.
    """
    model = RecipeModel.load(weights)
    texts = procedure.texts
    words, places, units = [], [], []
    for number, text in enumerate(texts):
        cut = words_of(text[:_MOST_CHARACTERS])
        words += [word.text for word in cut]
        places += [(word, token) for token, word in enumerate(cut)]
        units += [number] * len(cut)
        if cut and cut[-1].text not in SENTENCE_ENDS:  # the network knows whole sentences
            words.append(".")
            places.append((cut[-1], len(cut) - 1))
            units.append(number)
    spans, edges = model.parse(words, units)
    entities = []
    for span in spans:
        first, token = places[span.start]
        start, end = first.start, places[span.end - 1][0].end
        unit = units[span.start]
        entities.append(Entity(unit, start, end, token, texts[unit][start:end], span.kind))
    additions = plain_additions(words, units, spans, edges)
    reasons = [
        Reason(
            entities[dependent].instruction,
            entities[head].instruction,
            label,
            f"{_short(entities[dependent].text)} → {_short(entities[head].text)}",
        )
        for dependent, head, label in freed([entity.instruction for entity in entities], edges, additions)
    ]
    graph = EntityGraph(tuple(entities), tuple(EntityEdge(edge.dependent, edge.head, edge.label) for edge in edges))
    return coarsen(procedure, reasons, "learned", graph)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_WORDS else text[: _LONGEST_WORDS - 1] + "…"
