"""What the parser is trained to make small."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as fn

from graph2vid.learn.parser.batches import NO_LABEL, Batch
from graph2vid.learn.parser.network_torch import Scores
from graph2vid.text.learned.decode import FORBIDDEN
from graph2vid.text.learned.scheme import LABELS, SAME_THING

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
