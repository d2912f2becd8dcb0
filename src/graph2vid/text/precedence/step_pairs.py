"""What is known of pairs of steps before a network weighs them: words, links that a parser found, the written order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from graph2vid.text.learned import Observed, observe
from graph2vid.text.lexicon import words
from graph2vid.text.parsed_text import Parse, Procedure, Reason

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

_CUES = (
    r"meanwhile|while|at the same time|in the meantime",
    r"then|next|afterwards?",
    r"after|once|when|as soon as",
    r"before|prior",
    r"finally|lastly|enjoy|serve|finished|done",
    r"optional|if you|if desired|consider|may|can",
    r"alternatively|another|or|instead|other",
    r"it|them|they|this|these|those",
    r"the|your",
    r"a|an|some",
)
CUES = tuple(re.compile(rf"\b(?:{cue})\b", re.IGNORECASE) for cue in _CUES)
"""Words that speak of time, of choice, and of things known or new."""

_PLAIN = words(
    "the a an of to in on for with and or your you it them is are be from at into onto up out off as by this that if "
    "then until its their some any all will can not do make sure use using get so more about when over how after "
    "before one each other have has than but"
)
_WORD = re.compile(r"[a-z]+")
_ENDINGS = ("ing", "ies", "es", "ed", "s")
_SHORTEST = 3
_LEAST = 1e-4

_DEFINITE = words("the your this that these those its their")

STEP_FEATURES = len(CUES) + 13
PAIR_FEATURES = 22
TEXT_FEATURES = 5


@dataclass(frozen=True)
class StepPairs:
    """A procedure of n steps as the network sees it.

    Attributes
    ----------
    steps : float32 array, shape (n, STEP_FEATURES)
    pairs : float32 array, shape (n, n, PAIR_FEATURES)
        Of the pairs in which the first step is written earlier.
    text : float32 array, shape (TEXT_FEATURES,)
    meaning : float32 array, shape (n, width)
        The words of each step as the encoder of the learned parser reads them, on average.
    observed : Observed
        By the learned parser.
    """

    steps: Floats
    pairs: Floats
    text: Floats
    meaning: Floats
    observed: Observed

    @property
    def learned(self) -> Parse:
        """What the learned parser makes of the procedure."""
        return self.observed.parse


def step_pairs(procedure: Procedure) -> StepPairs:
    """Look at a procedure with the learned parser."""
    seen = observe(procedure)
    n = len(procedure)
    texts = procedure.texts
    split = [_WORD.findall(text.lower()) for text in texts]
    stems = [[_stem(word) for word in words] for words in split]
    content = [_content(words) for words in split]
    title = _content(_WORD.findall(procedure.title.lower()))
    lengths = np.log1p([len(words) for words in split])

    strong = np.triu(seen.best, 1)
    paths = _best_paths(strong)
    linked = np.zeros((n, n), bool)
    for before, after in seen.links:
        linked[before, after] = before < after
    reached = closed(linked)
    freed = closed(_matrix(seen.forward, n))
    mentioned, definite, known, used = _mentions(split, content)
    later, earlier = np.maximum(np.arange(n)[::-1], 1), np.maximum(np.arange(n), 1)
    at = np.arange(n) / max(n - 1, 1)
    after_last = np.concatenate([[_LEAST], np.diagonal(strong, 1)])
    columns = [
        *([bool(cue.search(text)) for text in texts] for cue in CUES),
        lengths,
        seen.entities,
        seen.actions,
        seen.additions,
        [len(words & title) for words in content],
        at,
        np.arange(n)[::-1],
        _logit(np.maximum(strong.max(axis=1), _LEAST)),
        _logit(np.maximum(strong.max(axis=0), _LEAST)),
        _logit(after_last),
        reached.sum(axis=1) / later + reached.sum(axis=0) / earlier,
        known,
        used,
    ]
    steps = np.array(columns, dtype=np.float32).T

    distance = np.arange(n)[None, :] - np.arange(n)[:, None]
    unit = seen.meaning / np.maximum(np.linalg.norm(seen.meaning, axis=1, keepdims=True), 1e-9)
    alike = unit @ unit.T
    mean_alike = (alike.sum() - n) / max(n * n - n, 1)
    verbs = np.array([words[0] if words else "" for words in stems])
    grids = [
        distance,
        distance == 1,
        distance / max(n - 1, 1),
        freed,
        reached,
        linked,
        _logit(strong),
        _logit(np.triu(seen.single, 1)),
        _logit(paths),
        *_shared(content, title),
        _same_beginnings(stems),
        verbs[:, None] == verbs[None, :],
        alike,
        alike - mean_alike,
        _between(paths),
        mentioned,
        definite,
        closed(mentioned),
        closed(definite | linked),
    ]
    pairs = np.stack([np.asarray(grid, dtype=np.float32) for grid in grids], axis=-1)
    text = np.array(
        [
            n,
            np.log1p(np.mean([len(words) for words in split])),
            np.mean(seen.additions),
            np.diagonal(reached, 1).mean() if n > 1 else 0.0,
            np.diagonal(mentioned, 1).mean() if n > 1 else 0.0,
        ],
        dtype=np.float32,
    )
    return StepPairs(steps, pairs, text, seen.meaning, seen)


def closed(relation: Flags) -> Flags:
    """Return the transitive closure of a relation, [n, n]."""
    found = relation.copy()
    for step in range(len(found)):
        found |= found[:, step, None] & found[step]
    return found


def _mentions(
    split: Sequence[list[str]], content: Sequence[frozenset[str]]
) -> tuple[Flags, Flags, list[float], list[float]]:
    """Return which step was the last to mention a word of a later one; the same where it is a thing known there.

    Also of each step the share of its words that an earlier step mentions, and that a later one does.
    """
    n = len(split)
    mentioned, definite = np.zeros((n, n), bool), np.zeros((n, n), bool)
    last: dict[str, int] = {}
    known, used = np.zeros(n), np.zeros(n)
    for step, spoken in enumerate(split):
        is_known = {
            _stem(word) for at, word in enumerate(spoken) if _DEFINITE.intersection(spoken[max(at - 2, 0) : at])
        }
        for word in content[step]:
            if word in last:
                mentioned[last[word], step] = True
                definite[last[word], step] |= word in is_known
                known[step] += 1
                used[last[word]] += 1
            last[word] = step
    size = np.maximum([len(words) for words in content], 1)
    return mentioned, definite, (known / size).tolist(), (used / size).tolist()


def _matrix(reasons: Iterable[Reason], n: int) -> Flags:
    found = np.zeros((n, n), bool)
    for reason in reasons:
        found[reason.before, reason.after] = True
    return found


def _best_paths(strong: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the largest product of links on a way from one step to another."""
    found = strong.copy()
    for step in range(len(found)):
        np.maximum(found, found[:, step, None] * found[step], out=found)
    return found


def _between(paths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the best way from one step to another by a third one."""
    found = np.zeros_like(paths)
    for step in range(len(paths)):
        np.maximum(found, paths[:, step, None] * paths[step], out=found)
    return found


def _logit(share: npt.ArrayLike) -> npt.NDArray[np.float64]:
    inside = np.clip(np.asarray(share, dtype=np.float64), _LEAST, 1 - _LEAST)
    found: npt.NDArray[np.float64] = np.log(inside / (1 - inside))
    return found


@lru_cache(50_000)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word.removesuffix(ending)
    return word


def _content(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_stem(word) for word in words if word not in _PLAIN and len(word) >= _SHORTEST)


def _shared(content: Sequence[frozenset[str]], title: frozenset[str]) -> npt.NDArray[np.float64]:
    """Return of each step and a later one how many words they share: so many, as a share of all their words, each
    divided by the number of steps that have it, and of the words of the title; shape (4, n, n).
    """
    columns = {word: column for column, word in enumerate(sorted(frozenset[str]().union(*content)))}
    has = np.zeros((len(content), len(columns)))
    for step, of_step in enumerate(content):
        has[step, [columns[word] for word in of_step]] = 1
    both, size = has @ has.T, has.sum(axis=1)
    rare = (has / np.maximum(has.sum(axis=0), 1)) @ has.T
    told = has * [word in title for word in columns]
    found = [both, both / np.maximum(size[:, None] + size - both, 1), rare, told @ has.T]
    return np.triu(np.stack(found), 1)


def _same_beginnings(steps: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
    """Return with how many equal words each step and a later one begin, [n, n]."""
    found = np.zeros((len(steps), len(steps)), dtype=np.int64)
    for i, one in enumerate(steps):
        for j in range(i + 1, len(steps)):
            found[i, j] = _same_beginning(one, steps[j])
    return found


def _same_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))
