"""The network of the learned parser, run with numpy: a few transformer layers, then several branches that vote.

A branch goes on with layers of its own to scores of tags and of edges; the scores of all branches are averaged.
``graph2vid.learn.parser.network_torch`` is the same network in torch; the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graph2vid._transformer import Floats, Transformer, gelu_tanh, ready
from graph2vid.text.learned import integer_layers
from graph2vid.text.learned.feature_sums import Rows, feature_sums
from graph2vid.text.learned.pairs import SIZES
from graph2vid.text.learned.parallel import side_by_side
from graph2vid.text.learned.tensors import SCALE, Tensors, rows
from graph2vid.text.learned.words import CLASSES, LABELS, TAGS, Span

Sizes: TypeAlias = dict[str, tuple[int, ...]]
Features: TypeAlias = npt.NDArray[np.int64]
_TOGETHER = ((0, 1), (2, 3), (4,), (5, 6, 7), (8,), (9,))
"""Features of pairs that are looked up at once, in a table of all their combinations."""
_MATRICES, _NORMS = ("qkv", "out", "up", "down"), ("norm1", "norm2")
_PARTS = ("dependent", "head", "labelled", "labelling")
"""What an entity is in an edge and in its label: computed at once."""
_SCORED = ("arc", "same")
_BLOCK = 1 << 16
"""So many numbers that stand for pairs are worked on at once: they stay in the cache."""


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


class _Branch(NamedTuple):
    """Weights of a branch as they are used together, each matrix with its bias.

    Attributes
    ----------
    entities : callable
        From what was read in entities to their parts in edges and labels.
    kinds : array
        What stands for classes.
    dependent, head : pair of array
        Columns: for the dependent the bilinear scores, then for each score a number and what meets the pair.
    label : callable
        From the head's part to what meets the dependent's, label by label.
    labelled, labelling, pair : pair of array
        ``pair`` stands on the left: a row per score, then per label.
    """

    entities: Callable[[Floats], Floats]
    kinds: Floats
    dependent: tuple[Floats, Floats]
    head: tuple[Floats, Floats]
    label: Callable[[Floats], Floats]
    labelled: tuple[Floats, Floats]
    labelling: tuple[Floats, Floats]
    pair: tuple[Floats, Floats]


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
        _check(shape, tensors)
        self.shape = shape
        self._tensors = tensors
        branches = [f"branches.{number}" for number in range(shape.branches)]
        layers = [f"shared.{number}" for number in range(shape.shared)]
        layers += [f"{branch}.layers.{number}" for branch in branches for number in range(shape.own)]
        parts = [tuple(f"{branch}.{part}" for part in _PARTS) for branch in branches]
        whole = {f"{layer}.{name}" for layer in layers for name in _MATRICES}.union(*parts)
        whole = {f"{name}.weight" for name in whole} | {f"{branch}.label.bilinear" for branch in branches}
        left_out = {name for name in whole if name + SCALE in tensors} | {"embed.words"}
        names = [name for name in tensors if not name.endswith(SCALE) and name not in left_out]
        self._weights = {name: _ready(tensors, name) for name in names}
        self._floats = Transformer(self._weights, shape.heads, gelu_tanh)
        self._linear = self._floats.linear
        self._layers = {name: self._layer(name) for name in layers}
        self._branches = [self._branch(*named) for named in zip(branches, parts, strict=True)]
        self._pair_weights = np.concatenate([branch.pair[0] for branch in self._branches], axis=1)
        self._pair_bias = np.sum([branch.pair[1] for branch in self._branches], axis=0)
        self.transitions = np.mean([self._weights[f"{branch}.transitions"] for branch in branches], axis=0)
        self._features = feature_sums([self._feature_table(numbers) for numbers in _TOGETHER])

    def _layer(self, name: str) -> Callable[[Floats], Floats]:
        """Return a transformer layer: in whole numbers where the weights are such."""
        if any(f"{name}.{part}.weight{SCALE}" not in self._tensors for part in _MATRICES):
            return partial(self._floats.layer, name=name)
        norms = {part: integer_layers.Norm(*self._both(f"{name}.{part}")) for part in _NORMS}
        return integer_layers.layer(
            {part: self._matrix(f"{name}.{part}") for part in _MATRICES}, norms, self.shape.heads
        )

    def _stacked(self, names: Sequence[str]) -> Callable[[Floats], Floats]:
        """Return several linear layers with the same inputs as one, their outputs side by side, through the GELU."""
        if all(f"{name}.weight{SCALE}" in self._tensors for name in names):
            matrices = zip(*(self._matrix(name) for name in names), strict=True)
            return integer_layers.linear(
                integer_layers.Matrix(*(np.concatenate(parts) for parts in matrices)), gelu=True
            )
        pairs = zip(*(self._both(name) for name in names), strict=True)
        weight, bias = (np.concatenate(parts, axis=-1) for parts in pairs)
        return lambda value: gelu_tanh(_times(value, (weight, bias)))

    def _branch(self, name: str, parts: Sequence[str]) -> _Branch:
        weights = self._weights

        def whole(side: str, *more: Floats) -> tuple[Floats, Floats]:
            """Stack what one end of a pair is multiplied by, for the scores of both kinds."""
            single, paired = (
                [self._both(f"{name}.{which}.{part}") for which in _SCORED] for part in (side, f"{side}_pair")
            )
            columns = [*more, *(weight for weight, _ in (*single, *paired))]
            zeros = np.zeros(sum(matrix.shape[1] for matrix in more), dtype=np.float32)
            return np.concatenate(columns, axis=1), np.concatenate([zeros, *(bias for _, bias in (*single, *paired))])

        pair = [self._both(f"{name}.{which}.pair") for which in (*_SCORED, "label")]
        return _Branch(
            entities=self._stacked(parts),
            kinds=weights[f"{name}.kinds"],
            dependent=whole("dependent", *(weights[f"{name}.{which}.bilinear"] for which in _SCORED)),
            head=whole("head"),
            label=self._label(f"{name}.label.bilinear"),
            labelled=self._both(f"{name}.label.dependent"),
            labelling=self._both(f"{name}.label.head"),
            pair=(
                np.concatenate([weight.T for weight, _ in pair]),
                np.concatenate([bias for _, bias in pair])[:, None],
            ),
        )

    def _label(self, name: str) -> Callable[[Floats], Floats]:
        size = len(LABELS) * self.shape.label
        if name in self._weights:
            turned = np.ascontiguousarray(self._weights[name].reshape(size, -1).T)
            return lambda value: value @ turned
        weight, scale = self._tensors[name].reshape(size, -1), self._tensors[name + SCALE].ravel()
        return integer_layers.linear(integer_layers.Matrix(weight, scale, np.zeros(size, dtype=np.float32)))

    def _both(self, name: str) -> tuple[Floats, Floats]:
        return self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]

    def _matrix(self, name: str) -> integer_layers.Matrix:
        weight = self._tensors[f"{name}.weight"]
        return integer_layers.Matrix(
            weight, self._tensors[f"{name}.weight{SCALE}"].ravel(), self._weights[f"{name}.bias"]
        )

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
        hidden = self._floats.normalise(hidden, "embed.norm")
        for layer in range(self.shape.shared):
            hidden = self._layers[f"shared.{layer}"](hidden)

        def read_on(branch: int) -> Floats:
            own = hidden
            for layer in range(self.shape.own):
                own = self._layers[f"branches.{branch}.layers.{layer}"](own)
            return own

        return side_by_side(read_on, range(self.shape.branches))

    def score_tags(self, words: Sequence[Floats]) -> Floats:
        """Score the tags of words, given what each branch read in them: shape (words, tags)."""
        found: Floats = np.mean([self._linear(read, f"branches.{b}.tags") for b, read in enumerate(words)], axis=0)
        return found

    def score_edges(self, words: Sequence[Floats], spans: Sequence[Span], features: Features) -> EdgeScores:
        """Score the edges between entities, given what each branch read in the words and the features of the pairs."""
        shape, count, scored = self.shape, len(spans), len(_SCORED)
        kinds = [CLASSES.index(span.kind) for span in spans]
        ends = [0, *np.cumsum([shape.arc, shape.arc, shape.label, shape.label]).tolist()]
        # The branches side by side: the products that follow add them up.
        crossed = np.empty((scored, count, shape.branches, shape.arc), dtype=np.float32)
        heads = np.empty((count, shape.branches, shape.arc), dtype=np.float32)
        meeting = np.empty((2, count, scored, shape.branches, shape.pair), dtype=np.float32)
        labelled = np.empty((count, shape.branches, shape.label), dtype=np.float32)
        by_label = np.empty((len(LABELS), count, shape.branches, shape.label), dtype=np.float32)
        scores, label = np.zeros((scored, count, count), np.float32), np.zeros((len(LABELS), count, count), np.float32)
        for number, (branch, read) in enumerate(zip(self._branches, words, strict=True)):
            parts = branch.entities(np.concatenate([*read_spans(spans, read), branch.kinds[kinds]], axis=1))
            dependent, heads[:, number], labelled[:, number], label_head = (
                parts[:, first:end] for first, end in pairwise(ends)
            )
            times = _times(dependent, branch.dependent)
            bilinear, sides = times[:, : scored * shape.arc], [times[:, scored * shape.arc :]]
            crossed[:, :, number] = bilinear.reshape(count, scored, -1).swapaxes(0, 1)
            sides.append(_times(heads[:, number], branch.head))
            for side, found in zip(sides, meeting[..., number, :], strict=True):
                found[:] = side[:, scored:].reshape(count, scored, -1)
            scores += sides[0].T[:scored, :, None] + sides[1].T[:scored, None]
            by_label[:, :, number] = (
                branch.label(np.ascontiguousarray(label_head)).reshape(count, len(LABELS), -1).swapaxes(0, 1)
            )
            label += _times(labelled[:, number], branch.labelled).T[:, :, None]
            label += _times(label_head, branch.labelling).T[:, None]
        scores += np.matmul(crossed.reshape(scored, count, -1), heads.reshape(count, -1).T)
        label += np.matmul(labelled.reshape(count, -1), by_label.reshape(len(LABELS), count, -1).swapaxes(1, 2))
        of_dependents, of_heads = meeting.reshape(2, count, scored, -1)
        rows_of_features = _feature_rows(features)
        dependents = max(_BLOCK // (count * of_heads.shape[-1]), 1)
        for first in range(0, count, dependents):
            these = slice(first, first + dependents)
            pair, met = self._features(rows_of_features[these], of_dependents[these], of_heads)
            both = (pair.reshape(-1, pair.shape[-1]) @ self._pair_weights.T).T  # quicker than the other way round
            both += self._pair_bias
            both = both.reshape(len(both), -1, count)
            met += both[:scored]
            scores[:, these] += met
            label[:, these] += both[scored:]
        scores /= shape.branches
        label /= shape.branches
        arcs, same = scores
        return EdgeScores(arcs, same, label.transpose(1, 2, 0))


def _feature_rows(features: Features) -> Rows:
    """Return the rows that features of pairs have in the tables: shape (dependents, tables, entities)."""
    values = np.moveaxis(features, -1, 0)
    found = np.empty((len(features), len(_TOGETHER), features.shape[1]), dtype=np.int64)
    for table, numbers in enumerate(_TOGETHER):
        found[:, table] = np.ravel_multi_index([values[n] for n in numbers], [SIZES[n] for n in numbers])
    return found


def _times(value: Floats, matrix: tuple[Floats, Floats]) -> Floats:
    found: Floats = value @ matrix[0]
    found += matrix[1]
    return found


def mean_pool(groups: Sequence[range], size: int) -> Floats:
    """Return the matrix that takes the mean of runs of rows: shape (groups, size)."""
    limits = np.array([(group.start, group.stop) for group in groups], dtype=np.int64).reshape(-1, 2)
    start, stop = limits[:, :1], limits[:, 1:]
    place = np.arange(size)
    found: Floats = ((start <= place) & (place < stop)) / np.maximum(stop - start, 1).astype(np.float32)
    return found


def mean_rows(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], values: Floats) -> Floats:
    """Return the means of runs of rows, of which none is empty."""
    lengths = stops - starts
    found: Floats = values.take(starts, axis=0)
    for number in range(1, int(lengths.max(initial=1))):  # few are long
        longer = np.flatnonzero(lengths > number)
        found[longer] += values.take(starts[longer] + number, axis=0)
    several = np.flatnonzero(lengths > 1)
    found[several] /= lengths[several, None].astype(np.float32)
    return found


def read_spans(spans: Sequence[Span], words: Floats) -> list[Floats]:
    """Read entities off words, as :func:`span_pools` says: the means, then the three words, side by side."""
    starts, stops = np.array([span[:2] for span in spans]).T
    alone = np.stack([starts, np.maximum(starts - 1, 0), np.minimum(stops, len(words) - 1)], axis=1)
    return [mean_rows(starts, stops, words), words.take(alone, axis=0).reshape(len(spans), -1)]


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


def _check(shape: Shape, tensors: Tensors) -> None:
    vocabulary = tensors["embed.words"]
    if vocabulary.ndim != 2 or vocabulary.shape[1] != shape.width or shape.width % shape.heads:
        raise ValueError(f"the vocabulary has the shape {vocabulary.shape}")
    for name, expected in expected_shapes(shape, len(vocabulary)).items():
        found, scale = tensors[name], tensors.get(name + SCALE)
        if found.shape != expected:
            raise ValueError(f"{name} has the shape {found.shape}, not {expected}")
        if (found.dtype == np.int8) != (scale is not None) or (scale is not None and scale.size != found[..., 0].size):
            raise ValueError(f"{name} needs 8-bit numbers with a scale per row, or 32-bit numbers")


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
