"""Batches of recipes as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from graph2vid.learn.parser.augment import Example
from graph2vid.text.learned.network_numpy import Shape, mean_pool, span_pools
from graph2vid.text.learned.pairs import SIZES, pair_features
from graph2vid.text.learned.scheme import CLASSES, LABELS, TAGS, sentence_numbers, spans_of
from graph2vid.text.learned.words import Pieces

Batch: TypeAlias = dict[str, Tensor]

NO_LABEL = -1
_TAG = {tag: number for number, tag in enumerate(TAGS)}
_LABEL = {label: number for number, label in enumerate(LABELS)}
_KIND = {kind: number for number, kind in enumerate(CLASSES)}


def collate(
    examples: Sequence[Example],
    pieces: Pieces,
    shape: Shape,
    hidden_words: float = 0.0,
    generator: np.random.Generator | None = None,
) -> Batch:
    """Return a batch; what is too long for the network is cut off.

    Parameters
    ----------
    examples : sequence of Example
    pieces : Pieces
    shape : Shape
    hidden_words : float
        The share of words that is hidden behind a mask.
    generator : numpy.random.Generator, optional
        Says which; needed where some are hidden.

    Returns
    -------
    dict of str to Tensor
        ``pieces`` and ``present`` (batch, pieces); ``word_pool`` (batch, words, pieces); ``tags`` and ``is_word``
        (batch, words); ``span_pools`` (batch, 4, entities, words); ``kinds`` and ``is_entity`` (batch, entities);
        ``features`` (batch, entities, entities, features); ``labels`` (batch, entities, entities), the label of the
        edge from the first to the second or ``NO_LABEL``.
    """
    rows = [_row(example, pieces, shape, hidden_words, generator) for example in examples]
    found = {}
    for name in rows[0]:
        arrays = [row[name] for row in rows]
        size = tuple(max(lengths) for lengths in zip(*(array.shape for array in arrays), strict=True))
        fill = NO_LABEL if name == "labels" else 0
        padded = np.full((len(arrays), *size), fill, dtype=arrays[0].dtype)
        for number, array in enumerate(arrays):
            padded[number][tuple(slice(length) for length in array.shape)] = array
        found[name] = torch.from_numpy(padded)
    return found


def _row(
    example: Example, pieces: Pieces, shape: Shape, hidden_words: float, generator: np.random.Generator | None
) -> dict[str, np.ndarray]:
    numbers, groups = [pieces.begin], []
    for word in example.words:
        of_word = pieces.of(word)
        if len(numbers) + len(of_word) >= shape.positions:
            break
        if generator is not None and generator.random() < hidden_words:
            of_word = (pieces.mask,) * len(of_word)
        groups.append(range(len(numbers), len(numbers) + len(of_word)))
        numbers.extend(of_word)
    numbers.append(pieces.end)
    count = len(groups)
    words = example.words[:count]
    sentences = sentence_numbers(words)
    spans = [span for span in spans_of(example.shown) if span.end <= count]
    place = {span.start: number for number, span in enumerate(spans)}
    labels = np.full((len(spans), len(spans)), NO_LABEL, dtype=np.int64)
    for dependent, head, label in example.edges:
        if dependent in place and head in place and label in _LABEL:
            labels[place[dependent], place[head]] = _LABEL[label]
    return {
        "pieces": np.array(numbers, dtype=np.int64),
        "present": np.ones(len(numbers), dtype=bool),
        "word_pool": mean_pool(groups, len(numbers)),
        "tags": np.array([_TAG[tag] for tag in example.tags[:count]], dtype=np.int64),
        "is_word": np.ones(count, dtype=bool),
        "span_pools": span_pools(spans, count),
        "kinds": np.array([_KIND[span.kind] for span in spans], dtype=np.int64),
        "is_entity": np.ones(len(spans), dtype=bool),
        "features": pair_features(words, sentences, spans).reshape(len(spans), len(spans), len(SIZES)),
        "labels": labels,
    }
