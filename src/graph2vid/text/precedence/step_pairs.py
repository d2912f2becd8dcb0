"""What is known of pairs of steps before a network weighs them: words, links that a parser found, the written order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graph2vid.text.learned import observe
from graph2vid.text.lexicon import words
from graph2vid.text.parsed_text import Parse, Procedure

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
    learned : Parse
        By the learned parser.
    """

    steps: Floats
    pairs: Floats
    text: Floats
    meaning: Floats
    learned: Parse


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
    freed = closed(_matrix(seen.parse, n))
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
    number = {word: sum(word in words for words in content) for word in set().union(*content)}
    shared = np.zeros((5, n, n))
    for i in range(n):
        for j in range(i + 1, n):
            both = content[i] & content[j]
            shared[:, i, j] = (
                len(both),
                len(both) / max(len(content[i] | content[j]), 1),
                sum(1 / number[word] for word in both),
                len(both & title),
                _same_beginning(stems[i], stems[j]),
            )
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
        *shared,
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
    return StepPairs(steps, pairs, text, seen.meaning, seen.parse)


def closed(relation: Flags) -> Flags:
    """Return the transitive closure of a relation, [n, n]."""
    found = relation.copy()
    for step in range(len(found)):
        found |= np.outer(found[:, step], found[step])
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


def _matrix(parse: Parse, n: int) -> Flags:
    found = np.zeros((n, n), bool)
    for reason in parse.reasons:
        found[reason.before, reason.after] = True
    return found


def _best_paths(strong: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the largest product of links on a way from one step to another."""
    found = strong.copy()
    for step in range(len(found)):
        found = np.maximum(found, np.outer(found[:, step], found[step]))
    return found


def _between(paths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the best way from one step to another by a third one."""
    found = np.zeros_like(paths)
    for step in range(len(paths)):
        found = np.maximum(found, np.outer(paths[:, step], paths[step]))
    return found


def _logit(share: npt.ArrayLike) -> npt.NDArray[np.float64]:
    inside = np.clip(np.asarray(share, dtype=np.float64), _LEAST, 1 - _LEAST)
    found: npt.NDArray[np.float64] = np.log(inside / (1 - inside))
    return found


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word.removesuffix(ending)
    return word


def _content(words: Iterable[str]) -> frozenset[str]:
    return frozenset(_stem(word) for word in words if word not in _PLAIN and len(word) >= _SHORTEST)


def _same_beginning(one: list[str], other: list[str]) -> int:
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))
