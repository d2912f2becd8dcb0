"""The network of the learned parser, run with numpy: a few transformer layers, then several branches that vote.

A branch goes on with layers of its own to scores of tags and of edges; the scores of all branches are averaged.
``graph2vid.learn.parser.network_torch`` is the same network in torch; the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graph2vid._transformer import Floats, Transformer, gelu_tanh, ready
from graph2vid.text.learned.pairs import SIZES
from graph2vid.text.learned.parallel import side_by_side
from graph2vid.text.learned.tensors import Array, Tensors, rows
from graph2vid.text.learned.words import CLASSES, LABELS, TAGS, Span

Sizes: TypeAlias = dict[str, tuple[int, ...]]
Features: TypeAlias = npt.NDArray[np.int64]
_TOGETHER = ((0, 1), (2, 3), (4,), (5, 6, 7), (8,), (9,))
"""Features of pairs that are looked up at once, in a table of all their combinations."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the network.

    Attributes
    ----------
    width, heads, inner : int
        Of a transformer layer: numbers per word piece, attention heads, hidden units.
    shared, own, branches : int
        Layers that all branches share, layers of each branch, and branches.
    positions : int
        The most word pieces that are read at once.
    kind, arc, label, pair : int
        Sizes of what stands for the class of an entity, for its part in an edge, in a label, and for the features of
        a pair.
    """

    width: int = 384
    heads: int = 12
    inner: int = 1536
    shared: int = 2
    own: int = 2
    branches: int = 2
    positions: int = 512
    kind: int = 64
    arc: int = 256
    label: int = 128
    pair: int = 64

    def to_json(self) -> dict[str, int]:
        """Return the sizes by name."""
        return asdict(self)


class EdgeScores(NamedTuple):
    """Scores of every ordered pair of entities, dependent first.

    Attributes
    ----------
    arc : array, shape (entities, entities)
        Of an edge; 0 is the score of having none. Softmax over the heads of a dependent, or one by one.
    same : array, shape (entities, entities)
        Of an edge that says "what the dependent made"; 0 is none. Softmax over the dependents of a head.
    label : array, shape (entities, entities, labels)
    """

    arc: Floats
    same: Floats
    label: Floats


class Network:
    """The network with its weights.

    Parameters
    ----------
    shape : Shape
    tensors : dict of str to array
        As :func:`graph2vid.text.learned.tensors.quantise` makes them, or 32-bit numbers.

    Raises
    ------
    KeyError, ValueError
        A tensor is missing, or has another size.
    """

    def __init__(self, shape: Shape, tensors: Tensors) -> None:
        self.shape = shape
        self._tensors = tensors
        names = (name for name in tensors if not name.endswith("#scale"))
        self._weights = {
            name: _ready(tensors, name) for name in names if name != "embed.words"
        }  # of which rows are read
        _check(shape, tensors, self._weights)
        self._layers = Transformer(self._weights, shape.heads, gelu_tanh)
        self._linear = self._layers.linear
        branches = range(shape.branches)
        self.transitions = np.mean([self._weights[f"branches.{b}.transitions"] for b in branches], axis=0)
        self._features = [self._feature_table(numbers) for numbers in _TOGETHER]

    def _feature_table(self, numbers: Sequence[int]) -> Floats:
        """Return the sums of the features' values: a row per combination, the branches side by side."""
        tables = [
            np.concatenate([self._weights[f"branches.{b}.features.{n}"] for b in range(self.shape.branches)], axis=1)
            for n in numbers
        ]
        return reduce(lambda found, table: (found[:, None] + table).reshape(-1, found.shape[1]), tables)

    def encode(self, pieces: Sequence[int]) -> list[Floats]:
        """Read word pieces.

        Returns
        -------
        list of array, shape (pieces, width)
            One per branch.
        """
        weights = self._weights
        numbers = np.asarray(pieces)
        hidden = rows(self._tensors, "embed.words", numbers) + weights["embed.positions"][: len(numbers)]
        hidden = self._layers.normalise(hidden, "embed.norm")
        for layer in range(self.shape.shared):
            hidden = self._layer(hidden, f"shared.{layer}", parts=self.shape.branches)

        def read_on(branch: int) -> Floats:
            own = hidden
            for layer in range(self.shape.own):
                own = self._layer(own, f"branches.{branch}.layers.{layer}")
            return own

        return side_by_side(read_on, range(self.shape.branches))

    def score_tags(self, words: Sequence[Floats]) -> Floats:
        """Score the tags of words, given what each branch read in them: shape (words, tags)."""
        found: Floats = np.mean([self._linear(read, f"branches.{b}.tags") for b, read in enumerate(words)], axis=0)
        return found

    def score_edges(self, words: Sequence[Floats], spans: Sequence[Span], features: Features) -> EdgeScores:
        """Score the edges between entities, given what each branch read in the words and the features of the pairs."""
        pools = span_pools(spans, len(words[0]))
        kinds = [CLASSES.index(span.kind) for span in spans]
        pairs = self._pairs(features)
        found = side_by_side(
            lambda branch: self._edges(branch, words[branch], pools, kinds, pairs[branch]), range(len(words))
        )
        return EdgeScores(*(np.mean(scores, axis=0) for scores in zip(*found, strict=True)))

    def _pairs(self, features: Features) -> Floats:
        """Return what stands for the features of pairs: shape (branches, entities, entities, pair)."""
        count, branches = len(features), self.shape.branches
        values = np.moveaxis(features, -1, 0)
        found = np.zeros((count, count, branches * self.shape.pair), dtype=np.float32)
        for numbers, table in zip(_TOGETHER, self._features, strict=True):
            row = np.ravel_multi_index([values[n] for n in numbers], [SIZES[n] for n in numbers])
            found += table.take(row, axis=0)
        return np.ascontiguousarray(gelu_tanh(found).reshape(count, count, branches, -1).transpose(2, 0, 1, 3))

    def _edges(self, branch: int, words: Floats, pools: Floats, kinds: list[int], pair: Floats) -> EdgeScores:
        weights, name = self._weights, f"branches.{branch}"
        read = (pools @ words).transpose(1, 0, 2).reshape(len(kinds), -1)
        entities = np.concatenate([read, weights[f"{name}.kinds"][kinds]], axis=1)
        parts = (f"{name}.{part}" for part in ("dependent", "head", "labelled", "labelling"))
        dependent, head, label_dependent, label_head = (gelu_tanh(self._linear(entities, part)) for part in parts)
        arc, same = (self._biaffine(f"{name}.{which}", dependent, head, pair) for which in ("arc", "same"))
        crossed = np.matmul(label_dependent @ weights[f"{name}.label.bilinear"], label_head.T)
        label: Floats = crossed.transpose(1, 2, 0) + self._linear(label_dependent, f"{name}.label.dependent")[:, None]
        label += self._linear(label_head, f"{name}.label.head")[None]
        label += self._linear(pair, f"{name}.label.pair")
        return EdgeScores(arc, same, label)

    def _biaffine(self, name: str, dependent: Floats, head: Floats, pair: Floats) -> Floats:
        crossed: Floats = dependent @ self._weights[f"{name}.bilinear"]
        score: Floats = crossed @ head.T
        score += self._linear(dependent, f"{name}.dependent")
        score += self._linear(head, f"{name}.head").T
        score += self._linear(pair, f"{name}.pair")[..., 0]
        score += np.matmul(pair, self._linear(dependent, f"{name}.dependent_pair")[:, :, None])[..., 0]
        score += np.matmul(pair.transpose(1, 0, 2), self._linear(head, f"{name}.head_pair")[:, :, None])[..., 0].T
        return score

    def _layer(self, value: Floats, name: str, parts: int = 1) -> Floats:
        """Go through a transformer layer, with so many parts of the word pieces side by side."""
        layers = self._layers
        limits = [len(value) * part // parts for part in range(parts + 1)]
        pieces = [slice(*ends) for ends in pairwise(limits)]
        read = np.concatenate(side_by_side(lambda own: layers.linear(value[own], f"{name}.qkv"), pieces))
        return np.concatenate(side_by_side(lambda own: layers.mix(value, read, name, own), pieces))


def mean_pool(groups: Sequence[range], size: int) -> Floats:
    """Return the matrix that takes the mean of runs of rows: shape (groups, size)."""
    limits = np.array([(group.start, group.stop) for group in groups], dtype=np.int64).reshape(-1, 2)
    start, stop = limits[:, :1], limits[:, 1:]
    place = np.arange(size)
    found: Floats = ((start <= place) & (place < stop)) / np.maximum(stop - start, 1).astype(np.float32)
    return found


def span_pools(spans: Sequence[Span], words: int) -> Floats:
    """Return the matrices that read entities off words: their mean, first word, the word before and the word after.

    Returns
    -------
    array, shape (4, spans, words)
        At the ends of the text its first and last word stand for what would lie outside.
    """
    single = [span.start for span in spans] + [max(span.start - 1, 0) for span in spans]
    single += [min(span.end, words - 1) for span in spans]
    groups = [*(range(span.start, span.end) for span in spans), *(range(at, at + 1) for at in single)]
    return mean_pool(groups, words).reshape(4, len(spans), words)


def _ready(tensors: Tensors, name: str) -> Floats:
    """Return a tensor in 32-bit numbers; a linear layer's matrix so that rows are multiplied from the left."""
    found = rows(tensors, name)
    return ready(found) if name.endswith(".weight") and found.ndim == 2 else found


def _check(shape: Shape, tensors: Tensors, weights: Mapping[str, Array]) -> None:
    vocabulary = tensors["embed.words"]
    if vocabulary.ndim != 2 or vocabulary.shape[1] != shape.width or shape.width % shape.heads:
        raise ValueError(f"the vocabulary has the shape {vocabulary.shape}")
    for name, expected in expected_shapes(shape, len(vocabulary)).items():
        found = tensors[name].shape if name == "embed.words" else tuple(weights[name].shape)
        if name.endswith(".weight") and len(found) == 2:
            found = found[::-1]
        if found != expected:
            raise ValueError(f"{name} has the shape {found}, not {expected}")


def expected_shapes(shape: Shape, vocabulary: int) -> Sizes:
    """Return the shape of every tensor of the network by name, as torch would keep it."""
    width, arc, pair, label = shape.width, shape.arc, shape.pair, shape.label
    entity = 4 * width + shape.kind
    layer: Sizes = {"qkv": (3 * width, width), "out": (width, width), "norm1": (width,), "norm2": (width,)}
    layer |= {"up": (shape.inner, width), "down": (width, shape.inner)}
    biaffine: Sizes = {"dependent": (1, arc), "head": (1, arc), "pair": (1, pair)}
    biaffine |= {"dependent_pair": (pair, arc), "head_pair": (pair, arc)}
    branch: Sizes = {"tags": (len(TAGS), width), "dependent": (arc, entity), "head": (arc, entity)}
    branch |= {"labelled": (label, entity), "labelling": (label, entity), "label.pair": (len(LABELS), pair)}
    branch |= {f"label.{part}": (len(LABELS), label) for part in ("dependent", "head")}
    branch |= {f"{which}.{part}": size for which in ("arc", "same") for part, size in biaffine.items()}
    branch |= {f"layers.{number}.{part}": size for number in range(shape.own) for part, size in layer.items()}
    bare = {"transitions": (len(TAGS), len(TAGS)), "kinds": (len(CLASSES), shape.kind)}
    bare |= {f"{which}.bilinear": (arc, arc) for which in ("arc", "same")}
    bare |= {f"features.{number}": (size, pair) for number, size in enumerate(SIZES)}
    branches = [f"branches.{number}" for number in range(shape.branches)]
    weighted: Sizes = {"embed.norm": (width,)}
    weighted |= {f"shared.{number}.{part}": size for number in range(shape.shared) for part, size in layer.items()}
    weighted |= {f"{name}.{part}": size for name in branches for part, size in branch.items()}
    found: Sizes = {"embed.words": (vocabulary, width), "embed.positions": (shape.positions, width)}
    for name, size in weighted.items():
        found |= {f"{name}.weight": size, f"{name}.bias": size[:1]}
    found |= {f"{name}.{part}": size for name in branches for part, size in bare.items()}
    return found | {f"{name}.label.bilinear": (len(LABELS), label, label) for name in branches}
