"""The learned parser: entities and the edges between them by a small network, then one step per instruction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graph2vid._one_thread import one_thread
from graph2vid.text.coarsen import coarsen, distinct_links, reason
from graph2vid.text.learned.additions import freed, plain_additions
from graph2vid.text.learned.decode import FORBIDDEN as FORBIDDEN
from graph2vid.text.learned.learned_parser import SHIPPED as SHIPPED
from graph2vid.text.learned.learned_parser import Reading
from graph2vid.text.learned.learned_parser import RecipeModel as RecipeModel
from graph2vid.text.learned.learned_parser import Scored as Scored
from graph2vid.text.learned.learned_parser import choose_edges as choose_edges
from graph2vid.text.learned.network_numpy import Network as Network
from graph2vid.text.learned.network_numpy import Shape as Shape
from graph2vid.text.learned.network_numpy import mean_pool as mean_pool
from graph2vid.text.learned.network_numpy import span_pools as span_pools
from graph2vid.text.learned.pairs import SIZES as SIZES
from graph2vid.text.learned.pairs import pair_features as pair_features
from graph2vid.text.learned.tensors import Tensors as Tensors
from graph2vid.text.learned.tensors import quantise as quantise
from graph2vid.text.learned.tensors import read_safetensors as read_safetensors
from graph2vid.text.learned.words import BEGIN as BEGIN
from graph2vid.text.learned.words import CLASSES as CLASSES
from graph2vid.text.learned.words import END as END
from graph2vid.text.learned.words import LABELS as LABELS
from graph2vid.text.learned.words import MASK as MASK
from graph2vid.text.learned.words import SAME_THING as SAME_THING
from graph2vid.text.learned.words import SENTENCE_ENDS, words_of
from graph2vid.text.learned.words import TAGS as TAGS
from graph2vid.text.learned.words import UNKNOWN as UNKNOWN
from graph2vid.text.learned.words import Pieces as Pieces
from graph2vid.text.learned.words import Span as Span
from graph2vid.text.learned.words import sentence_numbers as sentence_numbers
from graph2vid.text.learned.words import spans_of as spans_of
from graph2vid.text.learned.words import stem as stem
from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph, Parse, Procedure, Reason

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
    return observe(procedure, weights).parse


@dataclass(frozen=True)
class Observed:
    """What the learned parser sees in a procedure of n instructions.

    Attributes
    ----------
    procedure : Procedure
    graph : EntityGraph
    reasons : list of Reason
        All links between instructions, plain additions freed of each other.
    links : list of (int, int)
        Instructions that an edge joins, in the direction of the edge; plain additions are not freed of each other.
    best, single : array, shape (n, n)
        The most probable edge from one instruction into another: as the best edge of an entity, and by itself.
    meaning : float32 array, shape (n, width)
        The words of each instruction as the encoder reads them, on average.
    entities, actions : array, shape (n,)
        How many there are.
    additions : array, shape (n,)
        Whether an instruction is a plain addition.
    """

    procedure: Procedure
    graph: EntityGraph
    reasons: list[Reason]
    links: list[tuple[int, int]]
    best: npt.NDArray[np.float64]
    single: npt.NDArray[np.float64]
    meaning: npt.NDArray[np.float32]
    entities: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    additions: npt.NDArray[np.bool_]

    @cached_property
    def forward(self) -> tuple[Reason, ...]:
        """The links that go forward in the text, each once: the reasons of the flow graph."""
        return distinct_links(self.procedure, self.reasons).forward

    @cached_property
    def parse(self) -> Parse:
        """The flow graph."""
        return coarsen(self.procedure, self.reasons, "learned", self.graph)


@one_thread()
def observe(procedure: Procedure, weights: str | Path | None = None) -> Observed:
    """Look at a procedure with the network; the arguments are those of :func:`parse_by_model`."""
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
    readings, spans, scored = model.scored(words, units)
    edges = choose_edges(spans, scored, units)
    entities = []
    for span in spans:
        first, token = places[span.start]
        start, end, unit = first.start, places[span.end - 1][0].end, units[span.start]
        entities.append(Entity(unit, start, end, token, texts[unit][start:end], span.kind))
    additions = plain_additions(words, units, spans, edges)
    reasons = []
    for dependent, head, label in freed([entity.instruction for entity in entities], edges, additions):
        made, used = entities[dependent], entities[head]
        reasons.append(reason(made.instruction, used.instruction, label, made.text, used.text))
    graph = EntityGraph(tuple(entities), tuple(EntityEdge(edge.dependent, edge.head, edge.label) for edge in edges))
    of = np.array([entity.instruction for entity in entities], dtype=np.int64)
    n = len(texts)
    best, single = np.zeros((n, n)), np.zeros((n, n))
    for stretch in scored:
        units_inside, starts = np.unique(of[stretch.inside], return_index=True)
        ends = np.ix_(units_inside, units_inside)
        for highest, values in ((best, stretch.weighed.likely), (single, stretch.weighed.strong)):
            blocks = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
            highest[ends] = np.maximum(highest[ends], blocks)
    return Observed(
        procedure,
        graph,
        reasons,
        [(int(of[edge.dependent]), int(of[edge.head])) for edge in edges],
        best,
        single,
        _meaning(readings, units, n, model.network.shape.width * model.network.shape.branches),
        np.bincount(of, minlength=n),
        np.bincount(of[[entity.tag == "Ac" for entity in entities]], minlength=n),
        np.array([number in additions for number in range(n)], dtype=bool),
    )


def _meaning(readings: list[Reading], units: list[int], n: int, width: int) -> npt.NDArray[np.float32]:
    """Return the mean of what was read in the words of each instruction, the branches side by side."""
    total, count = np.zeros((n, width), dtype=np.float32), np.zeros((n, 1), dtype=np.float32)
    for reading in readings:
        share = (np.arange(n)[:, None] == units[reading.start : reading.stop]).astype(np.float32)
        total += share @ np.concatenate(reading.words, axis=1)
        count += share.sum(axis=1, keepdims=True)
    found: npt.NDArray[np.float32] = (total / np.maximum(count, 1)).astype(np.float32)
    return found
