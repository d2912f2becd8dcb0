"""The learned parser at work: tags of words, and edges between the tagged entities."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graph2vid._files import check_format, parse_json
from graph2vid._one_thread import one_thread
from graph2vid._transformer import Floats
from graph2vid.errors import FormatError, InputError
from graph2vid.text.learned.decode import (
    AcyclicEdges,
    Candidate,
    Probabilities,
    best_links,
    best_tags,
    candidates,
    probabilities,
)
from graph2vid.text.learned.network_numpy import EdgeScores, Network, Shape, mean_rows
from graph2vid.text.learned.pairs import pair_features
from graph2vid.text.learned.tensors import Tensors, read_safetensors, write_safetensors
from graph2vid.text.learned.words import ACTIONS, SENTENCE_ENDS, TAGS, Pieces, Span, sentence_numbers, spans_of

FORMAT = "graph2vid-recipe-parser"
VERSION = 1
SHIPPED = Path(__file__).parent / "weights" / "recipe_parser.safetensors"
FILE_NAME = SHIPPED.name


class Reading(NamedTuple):
    """What each branch of the network read in a stretch of words.

    Attributes
    ----------
    start, stop : int
        The words that were read together.
    central : range
        The words for which this stretch shows most of what stands around them.
    words : list of array, shape (words, width)
        One per branch.
    """

    start: int
    stop: int
    central: range
    words: list[Floats]


@dataclass(frozen=True)
class Scored:
    """Scores of the edges between the entities of a stretch.

    Attributes
    ----------
    inside : list of int
        The entities that lie in the stretch, by their number in the text.
    wanted : list of int
        Those, by their place in ``inside``, whose heads are looked for here.
    scores : EdgeScores
    """

    inside: list[int]
    wanted: list[int]
    scores: EdgeScores

    @cached_property
    def weighed(self) -> Probabilities:
        """What the scores mean."""
        return probabilities(self.scores)


class RecipeModel:
    """A tagger of the ten entity classes, and a parser of the labelled edges between entities.

    Parameters
    ----------
    network : Network
    pieces : Pieces
        The vocabulary that the network was trained with.
    """

    def __init__(self, network: Network, pieces: Pieces) -> None:
        self.network = network
        self.pieces = pieces

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> RecipeModel:
        """Load weights, once per process and file.

        Parameters
        ----------
        path : path, optional
            A file that ``graph2vid train parser`` made, or a folder with one of the name ``recipe_parser.safetensors``;
            by default the weights that come with graph2vid.

        Raises
        ------
        FormatError
            The file is cut off, of another kind or of a newer version.
        """
        file = SHIPPED if path is None else Path(path)
        file = file / FILE_NAME if file.is_dir() else file
        if not file.is_file():
            raise InputError(
                f"there are no weights of the learned parser at {file}; `graph2vid train parser` makes some"
            )
        status = file.stat()
        return _load(file.absolute(), status.st_mtime_ns, status.st_size)

    def save(self, path: str | os.PathLike[str], tensors: Tensors, about: Mapping[str, object]) -> None:
        """Write weights, vocabulary, sizes and words about the training in one file."""
        header = {"format": FORMAT, "version": VERSION, "shape": self.network.shape.to_json(), "about": dict(about)}
        metadata = {"config": json.dumps(header), "vocabulary": "\n".join(self.pieces.vocabulary)}
        write_safetensors(path, tensors, metadata)

    def tag(self, recipes: list[list[str]]) -> list[list[str]]:
        """Return the BIO tags of the words of each recipe."""
        return [self._tags(self.read(words)) for words in recipes]

    def edges(self, tokens: list[str], tags: list[str]) -> list[tuple[int, int, str]]:
        """Return the edges between the entities of a recipe.

        Parameters
        ----------
        tokens, tags : list of str
            Words with their BIO tags, true or predicted.

        Returns
        -------
        list of (int, int, str)
            First word of the dependent, first word of its head, label; by dependent, its primary head first. There is
            no cycle.
        """
        if len(tokens) != len(tags):
            raise InputError(f"{len(tokens)} words with {len(tags)} tags: there must be one tag per word")
        unknown = sorted(set(tags) - set(TAGS))
        if unknown:
            raise InputError(f"{unknown[0]!r} is no tag; tags are {', '.join(TAGS)}")
        spans = spans_of(tags)
        found = choose_edges(spans, self.score(tokens, spans, self.read(tokens)))
        return [(spans[edge.dependent].start, spans[edge.head].start, edge.label) for edge in found]

    def parse(self, words: list[str], units: Sequence[int]) -> tuple[list[Span], list[Candidate]]:
        """Find the entities of a text and the edges between them.

        Parameters
        ----------
        words : list of str
        units : sequence of int
            The instruction of each word. What an instruction makes is used later on: if it has an action and no edge
            leads from it into a later one, the most probable such edge is taken too.

        Returns
        -------
        spans : list of Span
        edges : list of Candidate
            Between numbers of spans.
        """
        _, spans, scored = self.scored(words, units)
        return spans, choose_edges(spans, scored, units)

    @one_thread()
    def scored(self, words: list[str], units: Sequence[int]) -> tuple[list[Reading], list[Span], list[Scored]]:
        """Return what was read, the entities of a text, and the scores of the edges between them."""
        readings = self.read(words)
        spans = spans_of(_within_units(words, self._tags(readings), units))
        return readings, spans, self.score(words, spans, readings)

    @one_thread()
    def read(self, words: list[str]) -> list[Reading]:
        """Read words with the network, long texts in stretches that overlap."""
        cut = [self.pieces.of(word) for word in words]
        readings = []
        for start, stop, central in stretches([len(of_word) for of_word in cut], self.network.shape.positions - 2):
            inside = cut[start:stop]
            ends = np.cumsum([1, *map(len, inside)])
            read = self.network.encode([self.pieces.begin, *chain.from_iterable(inside), self.pieces.end])
            words_read = [mean_rows(ends[:-1], ends[1:], of_pieces) for of_pieces in read]
            readings.append(Reading(start, stop, central, words_read))
        return readings

    @one_thread()
    def _tags(self, readings: list[Reading]) -> list[str]:
        if not readings:
            return []
        scores = []
        for start, _, central, read in readings:
            scores.append(self.network.score_tags(read)[central.start - start : central.stop - start])
        return best_tags(np.concatenate(scores), self.network.transitions)

    @one_thread()
    def score(self, words: list[str], spans: list[Span], readings: list[Reading]) -> list[Scored]:
        """Score the edges between the entities of each stretch."""
        sentences = sentence_numbers(words)
        found = []
        for start, stop, central, read in readings:
            inside = [at for at, span in enumerate(spans) if span.start >= start and span.end <= stop]
            local = [Span(spans[at].start - start, spans[at].end - start, spans[at].kind) for at in inside]
            wanted = [number for number, at in enumerate(inside) if spans[at].start in central]
            if len(local) > 1:
                features = pair_features(words[start:stop], sentences[start:stop], local)
                found.append(Scored(inside, wanted, self.network.score_edges(read, local, features)))
        return found


def choose_edges(spans: Sequence[Span], scored: Sequence[Scored], units: Sequence[int] = ()) -> list[Candidate]:
    """Return the edges that scores speak for: by dependent, its primary head first, without a cycle.

    ``units`` are those of :meth:`RecipeModel.parse`.
    """
    of = [units[span.start] for span in spans] if units else [0] * len(spans)
    possible: list[Candidate] = []
    links: dict[int, Candidate] = {}
    for stretch in scored:
        inside, wanted = stretch.inside, stretch.wanted
        possible += [_moved(edge, inside) for edge in candidates(stretch.weighed, wanted)]
        for unit, edge in best_links(stretch.weighed, wanted, [of[at] for at in inside]).items():
            if unit not in links or edge.score > links[unit].score:
                links[unit] = _moved(edge, inside)
    found = AcyclicEdges(len(spans))
    found.take_all(possible)
    leads_on = {of[edge.dependent] for edge in found.edges if of[edge.head] > of[edge.dependent]}
    makes = {unit for unit, span in zip(of, spans, strict=True) if span.kind in ACTIONS}
    found.take_all(links[unit] for unit in links.keys() & (makes - leads_on))
    return sorted(found.edges, key=lambda edge: (edge.dependent, -edge.score))


def stretches(sizes: Sequence[int], most: int) -> list[tuple[int, int, range]]:
    """Cut words into stretches of at most ``most`` pieces that overlap by about a third.

    Parameters
    ----------
    sizes : sequence of int
        Pieces of each word, none above ``most``.
    most : int

    Returns
    -------
    list of (int, int, range)
        First word, end, and the words that lie in the middle of the stretch: these cover all words, each once.
    """
    ends = np.cumsum(sizes)
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(sizes):
        before = ends[start] - sizes[start]
        stop = int(np.searchsorted(ends, before + most, side="right"))
        found.append((start, stop))
        if stop == len(sizes):
            break
        start = max(int(np.searchsorted(ends, before + most * 2 / 3, side="right")), start + 1)
    limits = [0, *((later[0] + earlier[1]) // 2 for earlier, later in pairwise(found)), len(sizes)]
    return [(*ends, range(*central)) for ends, central in zip(found, pairwise(limits), strict=False)]


def _within_units(words: Sequence[str], tags: Sequence[str], units: Sequence[int]) -> list[str]:
    """Return the tags with no entity that goes over the end of a sentence or of an instruction."""
    found: list[str] = []
    for at, (word, tag) in enumerate(zip(words, tags, strict=True)):
        if word in SENTENCE_ENDS:
            tag = "O"
        elif at and tag.startswith("I-") and (units[at] != units[at - 1] or found[-1] == "O"):
            tag = "B-" + tag[2:]
        found.append(tag)
    return found


def _moved(edge: Candidate, numbers: list[int]) -> Candidate:
    return Candidate(edge.score, numbers[edge.dependent], numbers[edge.head], edge.label)


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> RecipeModel:
    """Load a file; when it was changed it is loaded anew."""
    tensors, metadata = read_safetensors(path)
    config = parse_json(metadata.get("config", "{}"), f"the header of {path}")
    header = check_format(config, kind=FORMAT, version=VERSION, source=str(path))
    try:
        network = Network(Shape(**header["shape"]), tensors)
        pieces = Pieces(metadata["vocabulary"].split("\n"))
        if len(pieces.vocabulary) != len(tensors["embed.words"]):
            raise ValueError(f"{len(pieces.vocabulary)} word pieces for {len(tensors['embed.words'])} rows")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} does not fit this version of the learned parser ({error})") from error
    return RecipeModel(network, pieces)
