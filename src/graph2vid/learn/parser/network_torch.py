"""The network of the learned parser in torch, with dropout, and what it is trained to make small.

The same network as :mod:`graph2vid.text.learned.network_numpy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from graph2vid.learn.parser.examples import NO_LABEL, Batch
from graph2vid.text.learned import CLASSES, FORBIDDEN, LABELS, SAME_THING, SIZES, TAGS, Shape

NO_EDGE_AT_FIRST = -4.0
"""Where the scores of edges begin: few pairs are edges."""


class Dropout(NamedTuple):
    """Shares of numbers that are dropped while training: in layers, before the heads, in them, of pair features."""

    layer: float = 0.1
    read: float = 0.2
    head: float = 0.33
    pair: float = 0.2


class Scores(NamedTuple):
    """What one branch says of a batch; see :class:`graph2vid.text.learned.network_numpy.EdgeScores`.

    Shapes: tags (batch, words, tags), transitions (tags, tags), arc and same (batch, entities, entities), label
    (batch, entities, entities, labels).
    """

    tags: Tensor
    transitions: Tensor
    arc: Tensor
    same: Tensor
    label: Tensor


class Layer(nn.Module):
    """A transformer layer."""

    def __init__(self, shape: Shape, dropout: Dropout) -> None:
        super().__init__()
        width = shape.width
        self.heads, self.dropout = shape.heads, dropout.layer
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, shape.inner), nn.Linear(shape.inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, value: Tensor, present: Tensor) -> Tensor:
        """Return the next values; ``present`` (batch, pieces) says which pieces are there."""
        batch, count, width = value.shape
        query, key, content = self.qkv(value).view(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mask, dropped = present[:, None, None, :], self.dropout if self.training else 0.0
        mixed = fn.scaled_dot_product_attention(query, key, content, mask, dropped)
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, count, width))
        value = self.norm1(value + fn.dropout(mixed, self.dropout, self.training))
        found = self.down(fn.gelu(self.up(value), approximate="tanh"))
        normalised: Tensor = self.norm2(value + fn.dropout(found, self.dropout, self.training))
        return normalised


class Biaffine(nn.Module):
    """Scores of ordered pairs from the two, from features of the pair, and from both."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(shape.arc, shape.arc) / shape.arc)
        self.dependent, self.head = nn.Linear(shape.arc, 1), nn.Linear(shape.arc, 1)
        self.pair = nn.Linear(shape.pair, 1)
        self.dependent_pair, self.head_pair = nn.Linear(shape.arc, shape.pair), nn.Linear(shape.arc, shape.pair)
        nn.init.constant_(self.pair.bias, NO_EDGE_AT_FIRST)

    def forward(self, dependent: Tensor, head: Tensor, pair: Tensor) -> Tensor:
        """Return scores, shape (batch, entities, entities)."""
        score = torch.bmm(dependent @ self.bilinear, head.transpose(1, 2))
        score = score + self.dependent(dependent) + self.head(head).transpose(1, 2) + self.pair(pair)[..., 0]
        score = score + torch.einsum("bif,bijf->bij", self.dependent_pair(dependent), pair)
        found: Tensor = score + torch.einsum("bjf,bijf->bij", self.head_pair(head), pair)
        return found.float()


class Labels(nn.Module):
    """Scores of the labels of ordered pairs."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(len(LABELS), shape.label, shape.label) / shape.label)
        self.dependent, self.head = nn.Linear(shape.label, len(LABELS)), nn.Linear(shape.label, len(LABELS))
        self.pair = nn.Linear(shape.pair, len(LABELS))

    def forward(self, dependent: Tensor, head: Tensor, pair: Tensor) -> Tensor:
        """Return scores, shape (batch, entities, entities, labels)."""
        score = torch.einsum("bip,lpq,bjq->bijl", dependent, self.bilinear, head)
        found: Tensor = score + self.dependent(dependent)[:, :, None] + self.head(head)[:, None] + self.pair(pair)
        return found.float()


class Branch(nn.Module):
    """Layers of its own, then tags and edges."""

    def __init__(self, shape: Shape, dropout: Dropout) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.own))
        self.tags = nn.Linear(shape.width, len(TAGS))
        self.transitions = nn.Parameter(torch.zeros(len(TAGS), len(TAGS)))
        self.kinds = nn.Parameter(torch.randn(len(CLASSES), shape.kind))
        self.features = nn.ParameterList(0.1 * torch.randn(size, shape.pair) for size in SIZES)
        entity = 4 * shape.width + shape.kind
        self.dependent, self.head = nn.Linear(entity, shape.arc), nn.Linear(entity, shape.arc)
        self.labelled, self.labelling = nn.Linear(entity, shape.label), nn.Linear(entity, shape.label)
        self.arc, self.same, self.label = Biaffine(shape), Biaffine(shape), Labels(shape)

    def forward(self, hidden: Tensor, batch: Mapping[str, Tensor]) -> Scores:
        """Return the scores of a batch."""
        for layer in self.layers:
            hidden = layer(hidden, batch["present"])
        words = torch.bmm(batch["word_pool"], hidden)
        tags = self.tags(fn.dropout(words, self.dropout.read, self.training)).float()
        kinds = batch["kinds"]
        read = torch.einsum("bkew,bwd->bekd", batch["span_pools"], words).flatten(2)
        entities = torch.cat([read, fn.embedding(kinds, self.kinds)], dim=-1)
        entities = fn.dropout(entities, self.dropout.read, self.training)
        # a product with zeros and ones rather than a look-up: its gradient is quick, and the same each time
        pair = _marks(batch["features"]) @ torch.cat(list(self.features))
        pair = fn.dropout(fn.gelu(pair, approximate="tanh"), self.dropout.pair, self.training)
        dependent, head, label_dependent, label_head = (
            fn.dropout(fn.gelu(part(entities), approximate="tanh"), self.dropout.head, self.training)
            for part in (self.dependent, self.head, self.labelled, self.labelling)
        )
        arc, same = self.arc(dependent, head, pair), self.same(dependent, head, pair)
        return Scores(tags, self.transitions, arc, same, self.label(label_dependent, label_head, pair))


def _marks(features: Tensor) -> Tensor:
    """Return ones at the values of the features and zeros elsewhere, all values side by side."""
    first = torch.tensor([0, *SIZES[:-1]], device=features.device).cumsum(0)
    return torch.zeros(*features.shape[:-1], sum(SIZES), device=features.device).scatter_(-1, features + first, 1.0)


class Embedding(nn.Module):
    """What stands for word pieces at their places."""

    def __init__(self, shape: Shape, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Parameter(0.02 * torch.randn(vocabulary, shape.width))
        self.positions = nn.Parameter(0.02 * torch.randn(shape.positions, shape.width))
        self.norm = nn.LayerNorm(shape.width, 1e-12)

    def forward(self, pieces: Tensor) -> Tensor:
        """Return values, shape (batch, pieces, width)."""
        found: Tensor = self.norm(fn.embedding(pieces, self.words) + self.positions[: pieces.shape[1]])
        return found


class TorchNetwork(nn.Module):
    """The whole network.

    Parameters
    ----------
    shape : Shape
    vocabulary : int
        Word pieces.
    dropout : Dropout
    """

    def __init__(self, shape: Shape, vocabulary: int, dropout: Dropout = Dropout()) -> None:  # noqa: B008
        super().__init__()
        self.shape, self.dropout = shape, dropout
        self.embed = Embedding(shape, vocabulary)
        self.shared = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.shared))
        self.branches = nn.ModuleList(Branch(shape, dropout) for _ in range(shape.branches))

    def forward(self, batch: Mapping[str, Tensor]) -> list[Scores]:
        """Return the scores of each branch for a batch (see :func:`graph2vid.learn.parser.examples.collate`)."""
        hidden = fn.dropout(self.embed(batch["pieces"]), self.dropout.layer, self.training)
        for layer in self.shared:
            hidden = layer(hidden, batch["present"])
        return [branch(hidden, batch) for branch in self.branches]

    def depth_of(self, name: str) -> int | None:
        """Return how deep a parameter of the encoder lies (0: the embedding), or None for one of the heads."""
        part, *rest = name.split(".")
        if part == "embed":
            return 0
        if part == "shared":
            return 1 + int(rest[0])
        return 1 + self.shape.shared + int(rest[2]) if rest[1] == "layers" else None


SMOOTHING = 0.05
"""The share of each target that is spread over all choices."""
EACH_PAIR_WEIGHT = 0.5
SAME_WEIGHT = 0.5
_OUT = -1e4
_SAME = [LABELS.index(label) for label in SAME_THING]


def parser_loss(scores: Scores, batch: Batch) -> Tensor:
    """Return the loss of one branch: tags, heads, each pair by itself, antecedents, labels."""
    labels, is_entity = batch["labels"], batch["is_entity"]
    itself = torch.eye(labels.shape[1], dtype=torch.bool, device=labels.device)
    is_pair = is_entity[:, :, None] & is_entity[:, None] & ~itself
    edge = (labels != NO_LABEL).float()
    same = torch.isin(labels, torch.tensor(_SAME, device=labels.device)).float()
    entities = is_entity.sum().clamp(min=1)
    each = fn.binary_cross_entropy_with_logits(scores.arc, edge, reduction="none")
    return (
        crf_loss(scores.tags, scores.transitions, batch["tags"], batch["is_word"])
        + choice_loss(scores.arc, edge, is_pair, is_entity)
        + EACH_PAIR_WEIGHT * (each * is_pair).sum() / entities
        + SAME_WEIGHT * choice_loss(scores.same.mT, same.mT, is_pair.mT, is_entity)
        + label_loss(scores.label, labels)
    )


def choice_loss(scores: Tensor, chosen: Tensor, possible: Tensor, is_entity: Tensor) -> Tensor:
    """Return the cross entropy of choosing along the last axis, or none (score 0).

    Parameters
    ----------
    scores, chosen, possible : Tensor, shape (batch, entities, entities)
        ``chosen`` is 1 at what is right; several share the probability.
    is_entity : Tensor, shape (batch, entities)
    """
    none = torch.zeros_like(scores[..., :1])
    logarithms = fn.log_softmax(torch.cat([none, scores.masked_fill(~possible, _OUT)], dim=-1), dim=-1)
    count = chosen.sum(dim=-1, keepdim=True)
    target = torch.cat([(count == 0).float(), chosen / count.clamp(min=1)], dim=-1)
    open_ = torch.cat([torch.ones_like(none), possible.float()], dim=-1)
    target = (1 - SMOOTHING) * target + SMOOTHING * open_ / open_.sum(dim=-1, keepdim=True)
    losses = -(target * logarithms * open_).sum(dim=-1)
    return (losses * is_entity).sum() / is_entity.sum().clamp(min=1)


def label_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the cross entropy of the labels where there is an edge."""
    there = labels != NO_LABEL
    losses = fn.cross_entropy(
        scores.flatten(0, 2), labels.flatten(), ignore_index=NO_LABEL, reduction="sum", label_smoothing=SMOOTHING
    )
    return losses / there.sum().clamp(min=1)


def crf_loss(scores: Tensor, transitions: Tensor, tags: Tensor, is_word: Tensor) -> Tensor:
    """Return minus the log-probability of the true tags under a linear-chain conditional random field, per word.

    The sum over all sequences is a product of matrices in the log semiring; it is taken in a tree, in as many rounds
    as the logarithm of the number of words.
    """
    batch, words, count = scores.shape
    there = is_word[:, 1:]
    found = (scores.gather(2, tags[..., None])[..., 0] * is_word).sum(dim=1)
    found = found + (transitions[tags[:, :-1], tags[:, 1:]] * there).sum(dim=1)
    allowed = transitions + torch.from_numpy(FORBIDDEN).to(scores)
    neutral = torch.full((count, count), _OUT, device=scores.device).fill_diagonal_(0)
    steps = torch.where(there[..., None, None], allowed + scores[:, 1:, None, :], neutral)
    while steps.shape[1] > 1:
        if steps.shape[1] % 2:
            steps = torch.cat([steps, neutral.expand(batch, 1, count, count)], dim=1)
        steps = torch.logsumexp(steps[:, 0::2, :, :, None] + steps[:, 1::2, None, :, :], dim=3)
    first = scores[:, 0] + torch.from_numpy(FORBIDDEN[0]).to(scores)
    paths = first[:, :, None] + steps[:, 0] if words > 1 else first[:, :, None]
    every = torch.logsumexp(paths, dim=(1, 2))
    return (every - found).sum() / is_word.sum()
