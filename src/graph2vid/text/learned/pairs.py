"""What is known of two entities without reading them closely: how far apart they are, and whether their words agree.

The network sees words in their context, but 240 recipes are few to learn from that "the egg mixture" is what was made
where the egg was last mentioned. These features say it outright.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from graph2vid.text.learned.words import ACTIONS, CLASSES, Span, stem

FARTHEST_SENTENCE = 6
FARTHEST_ACTION = 7
_BOUNDS = np.array([1, 2, 3, 4, 5, 6, 8, 11, 16, 26])
_FOLLOWING = 2

LINKING = (
    ",", ";", "(", "and", "or", "of", "in", "into", "to", "with", "without", "on", "onto", "over", "from", "for",
    "until", "till", "by", "at", "through", "under", "around", "as", "then", "while", "when", "if", "is", "are",
    "using",
)  # fmt: skip
"""Words that say how two things belong together."""
_LINK = {word: number for number, word in enumerate(LINKING, start=1)}
_DESCRIBING = frozenset({"Q", "Sf", "St"})

SIZES = (
    2 * len(_BOUNDS) + 1,  # entities between the two, in steps that grow
    2 * FARTHEST_SENTENCE + 1,  # sentences between
    2 * FARTHEST_ACTION + 1,  # actions between
    7,  # whether their words agree: none; a word, the last word, all; and so with the last entity of which this is true
    len(CLASSES) ** 2,  # their classes
    6,  # whether the dependent's sentence mentions the head, and was the last to do so
    2 * (_FOLLOWING + 2),  # actions that follow the dependent in its sentence, and whether the head's is a later one
    2 * (_FOLLOWING + 2),  # actions that precede the head in its sentence, and whether the other's is an earlier one
    2 * (len(LINKING) + 1),  # the linking word before the dependent, and whether the head comes before it
    len(LINKING) + 2,  # the linking word between the two, where they are neighbours
)
"""How many values each feature has."""


def pair_features(words: Sequence[str], sentences: Sequence[int], spans: Sequence[Span]) -> npt.NDArray[np.int64]:
    """Return the features of every ordered pair of entities.

    Parameters
    ----------
    words : sequence of str
    sentences : sequence of int
        The sentence of each word.
    spans : sequence of Span
        The entities, in the order of the text.

    Returns
    -------
    array of int, shape (entities, entities, features)
        First axis the dependent, second the head; values below :data:`SIZES`.
    """
    count = len(spans)
    if not count:
        return np.zeros((0, 0, len(SIZES)), dtype=np.int64)
    place = np.arange(count)
    sentence = np.array([sentences[span.start] for span in spans])
    is_action = np.array([span.kind in ACTIONS for span in spans])
    actions = np.cumsum(is_action)
    kind = np.array([CLASSES.index(span.kind) for span in spans])
    apart = place[None] - place[:, None]
    grown = np.searchsorted(_BOUNDS, np.arange(1 - count, count), side="right")
    bucket = (grown - grown[::-1])[apart + (count - 1)]
    agreement, mentions = _agreement(words, spans, sentence, apart)
    found = np.stack(
        [
            bucket + len(_BOUNDS),
            np.clip(sentence[None] - sentence[:, None], -FARTHEST_SENTENCE, FARTHEST_SENTENCE) + FARTHEST_SENTENCE,
            np.clip(actions[None] - actions[:, None], -FARTHEST_ACTION, FARTHEST_ACTION) + FARTHEST_ACTION,
            agreement,
            kind[:, None] * len(CLASSES) + kind[None],
            mentions,
            _following(sentence, is_action),
            _following(-sentence[::-1], is_action[::-1])[::-1, ::-1].T,
            2 * _links_before(words, sentences, spans)[:, None] + (apart < 0),
            _links_between(words, sentences, spans),
        ]
    )
    return np.moveaxis(found, 0, -1)  # feature by feature in memory: they are written and read so


def _agreement(
    words: Sequence[str], spans: Sequence[Span], sentence: npt.NDArray[np.int64], apart: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how the words of two entities agree, and how the sentence of the first mentions the second.

    The latter is 5 where no earlier entity shares a word with the head; 0 where some do, but none in the dependent's
    sentence; else 1, or 2 if no later sentence does; and 3 or 4 if the shared word is the head's last one.
    """
    numbers: dict[str, int] = {}
    stems = [
        tuple(numbers.setdefault(stem(word), len(numbers)) for word in words[span.start : span.end]) for span in spans
    ]
    has = np.zeros((len(spans), len(numbers)), dtype=np.float32)
    has[[at for at, of_span in enumerate(stems) for _ in of_span], list(chain.from_iterable(stems))] = 1
    wholes: dict[tuple[int, ...], int] = {}
    whole = np.array([wholes.setdefault(of_span, len(wholes)) for of_span in stems])
    last = np.array([of_span[-1] for of_span in stems])
    shares = has @ has.T > 0
    agreement = np.where(whole[:, None] == whole, 3, np.where(last[:, None] == last, 2, shares))
    earlier = apart > 0  # first entity before the second
    shared = shares & earlier
    company = ((sentence[:, None] == sentence) & (apart != 0)).astype(np.float32)
    mentioned = company @ shared > 0
    noun = company @ ((has[:, last] > 0) & earlier) > 0
    latest = np.where(shared, sentence[:, None], -1).max(axis=0)
    fresh = latest < 0
    is_latest = sentence[:, None] == latest
    mentions = np.where(noun, 3 + is_latest, np.where(mentioned, 1 + is_latest, 0))
    agreement = agreement + 3 * (is_latest & shared)
    return agreement, np.where(fresh[None] & ~mentioned, 5, mentions)


def _following(sentence: npt.NDArray[np.int64], is_action: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    together = sentence[:, None] == sentence
    after = np.triu(together, 1) & is_action[None]
    following = np.where(is_action, np.minimum(after.sum(axis=1), _FOLLOWING), _FOLLOWING + 1)
    return 2 * following[:, None] + (sentence[None] > sentence[:, None])


def _links_before(words: Sequence[str], sentences: Sequence[int], spans: Sequence[Span]) -> npt.NDArray[np.int64]:
    """Return the last linking word before each entity, what describes it skipped; 0 where there is none."""
    found = []
    for at, span in enumerate(spans):
        start, before = span.start, at
        while before and spans[before - 1].end == start and spans[before - 1].kind in _DESCRIBING:
            before -= 1
            start = spans[before].start
        limit = spans[before - 1].end if before else 0
        found.append(_link(words, [word for word in range(limit, start) if sentences[word] == sentences[span.start]]))
    return np.array(found)


def _links_between(words: Sequence[str], sentences: Sequence[int], spans: Sequence[Span]) -> npt.NDArray[np.int64]:
    """Return the last linking word between neighbours in a sentence, else 0; one more where there is no such word."""
    found = np.zeros((len(spans), len(spans)), dtype=np.int64)
    for at, (one, other) in enumerate(pairwise(spans)):
        if sentences[one.start] == sentences[other.start]:
            link = 1 + _link(words, range(one.end, other.start))
            found[at, at + 1] = found[at + 1, at] = link
    return found


def _link(words: Sequence[str], places: Sequence[int]) -> int:
    return next((number for at in reversed(places) if (number := _LINK.get(words[at].lower(), 0))), 0)
