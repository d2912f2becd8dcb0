"""Which parts of a script are said when: sentences without times against a transcript, word by word.

The clips are the words of the transcript, the steps the sentences. A word that is in the sentence gains by how rare it
is, more so beside its neighbour there; another one costs. A sentence takes an unbroken sequence of words, or none where
the best would gain less than a third of what saying all of it would. Paragraphs may come in any order, their sentences
keep theirs.

Paragraphs touch each other only where they want the same words. So each is aligned alone, exactly; those that
collide are aligned together, again exactly while that is small. What is found so is the optimum: the sum of the
parts is a lower bound of the whole. Where too many collide, one after the other gives way, and the difference from the
bound is the gap that is reported.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._options import EvidenceOptions
from graph2vid.alignment import Problem
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evidence import Cache, Cue, Transcript, Word, clips_of, is_captions, transcript_of
from graph2vid.flow import FlowGraph
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.text import Script, read_script
from graph2vid.tsort import TSortGraph

ORDERS = ("any", "written")
"""Whether paragraphs may be said in any order, or only in the written one."""

Costs: TypeAlias = NDArray[np.float32]

_MISMATCH = 0.5  # what a word costs that is not in the sentence, in units of a word's mean gain
_ALONE = 0.4  # of its gain a word has without its neighbour
_LEAST_SHARE = 0.35  # of what saying all of a sentence would gain: what is less is not said
_MOST_CELLS = 120_000_000  # sentences × words of one alignment: half a gigabyte
_MOST_STATES = 2_000  # of paragraphs that are aligned together
_MOST_MISSING = 3  # words at the end of a sentence that may have been transcribed otherwise
_TOGETHER = 64  # sentences whose costs are made at a time
_ROUNDING = 1e-5
_SURE = 0.5  # what is less probable is doubtful
_LEAST_SECONDS = 0.01
_STEM = 6  # letters by which longer words are told apart
_CLIP_SECONDS = 0.5
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)*")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")  # scripts without spaces: a sign is a word
_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NUMBERS = {str(at): name[:_STEM] for at, name in enumerate(_NAMES.split())}
# Log-odds that a sentence begins within a second of where it is said to begin: a constant, the share that is said, and
# the logarithm of its number of words. Fitted by benchmarks/script_experiment.py.
_CALIBRATION = (-0.08, 7.03, -0.21)


class Said(NamedTuple):
    """Where a sentence is said.

    Attributes
    ----------
    start, end : float
        Seconds.
    confidence : float
        The probability that it begins within a second of ``start``.
    share : float
        How much of it is said word for word, in 0 … 1; rare words count more.
    """

    start: float
    end: float
    confidence: float
    share: float


@dataclass(frozen=True)
class ScriptAlignment:
    """When the sentences of a script are said.

    Attributes
    ----------
    sentences : tuple of Said or None
        Per sentence of all paragraphs, in the order written; None: it is not said.
    cost : float
    gap : float
        How far the cost may lie above the optimum; 0: this is the optimum.
    """

    sentences: tuple[Said | None, ...]
    cost: float
    gap: float


def align_text(
    script: str | os.PathLike[str] | Script,
    video: str | os.PathLike[str],
    *,
    captions: str | os.PathLike[str] | None = None,
    order: str = "any",
    speech_model: str | None = None,
    language: str | None = None,
    cache: Cache | bool = True,
    progress: Callable[..., None] | None = None,
) -> Grounding:
    """Say when each sentence of a script is said in a video, and which are not said at all.

    Parameters
    ----------
    script : path, str or Script
        A file (plain text or Markdown, empty lines between paragraphs), or paragraphs of sentences.
    video : path
        A media file, or its captions.
    captions : path, optional
        Captions of the media file; its speech is transcribed otherwise.
    order : str
        ``"any"``: paragraphs may come in any order, their sentences keep theirs; ``"written"``: all as written.
    speech_model, language : str, optional
        As for :func:`graph2vid.ground`.
    cache : Cache or bool
        Where transcripts are kept: by default in the cache of the user; False: nowhere.
    progress : callable, optional
        Called as (stage, done, total), or as (stage).

    Returns
    -------
    Grounding
        A step per sentence, with the id "paragraph.sentence"; its ``confidence`` is the probability that it begins
        within a second of its start. ``options["script"]`` holds the order and the gap.
    """
    if order not in ORDERS:
        raise InputError(f"order must be {' or '.join(map(repr, ORDERS))}, not {order!r}")
    paragraphs = script if isinstance(script, tuple) else read_script(script)
    kept = (Cache() if cache else None) if isinstance(cache, bool) else cache
    options = EvidenceOptions(speech_model=speech_model, language=language)
    transcript = transcript_of(video, captions, options, cache=kept, progress=progress)
    if progress is not None:
        progress("aligning")
    found = align_script(paragraphs, transcript.cues, order=order)
    title = "" if isinstance(script, tuple) else Path(script).stem
    about = {"order": order, "gap": found.gap, "paragraphs": len(paragraphs), "source": transcript.source}
    flow = _flow(paragraphs, order, title)
    name = None if is_captions(video) else os.fspath(video)
    return _grounding(flow, found, transcript, name, {"script": about})


def align_script(paragraphs: Script, cues: Sequence[Cue], *, order: str = "any") -> ScriptAlignment:
    """Say when the sentences of a script are said, by a transcript.

    Parameters
    ----------
    paragraphs : tuple of tuple of str
        The script.
    cues : sequence of Cue
        The transcript; words whose times are not known are spread over their cue.
    order : str
        As for :func:`align_text`.
    """
    words = _words(cues)
    tokens = [_stems(sentence) for paragraph in paragraphs for sentence in paragraph]
    if not words:
        return ScriptAlignment((None,) * len(tokens), 0.0, 0.0)
    table = _Table(tokens, [stem for stem, _, _ in words])
    ends = np.cumsum([0, *map(len, paragraphs)])
    groups = [list(range(first, last)) for first, last in pairwise(ends.tolist())]
    if order == "written":
        groups = [[step for group in groups for step in group]]
    places, cost, gap = _aligned(table, groups)
    taken = np.zeros(len(words) + 1, bool)
    for first, last in filter(None, places):
        taken[first : last + 1] = True
    said: list[Said | None] = []
    for step, place in enumerate(places):
        if place is None:
            said.append(None)
            continue
        first, last, share = table.to_the_word(step, *place, taken)
        start, end = words[first][1], max(words[last][2], words[first][1])
        said.append(Said(start, end, _confidence(share, len(tokens[step])), share))
    return ScriptAlignment(tuple(said), cost, gap)


# -- words ------------------------------------------------------------------------------------------------------


def _stems(text: str) -> list[str]:
    """Return the words of a text in a form in which those that sound the same are the same."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    found = _TOKEN.findall(_WIDE.sub(lambda sign: f" {sign[0]} ", plain))
    return [_NUMBERS.get(word, word.replace("'", "").replace("’", "")[:_STEM]) for word in found]


def _words(cues: Sequence[Cue]) -> list[tuple[str, float, float]]:
    """Return the words of a transcript: stem, start, end; in order of time."""
    words: list[tuple[str, float, float]] = []
    for cue in cues:
        timed = cue.words or (Word(cue.start, cue.end, cue.text),)
        for word in timed:
            stems = _stems(word.text)
            lengths = np.cumsum([0, *(len(stem) + 1 for stem in stems)])
            times = word.start + (word.end - word.start) * lengths / max(lengths[-1], 1)
            words += [(stem, float(times[at]), float(times[at + 1])) for at, stem in enumerate(stems)]
    return sorted(words, key=lambda one: one[1])


class _Table:
    """What each word of the transcript gains or costs in each sentence."""

    def __init__(self, sentences: list[list[str]], said: list[str]) -> None:
        counts = Counter(stem for sentence in sentences for stem in sentence)
        often = counts + Counter(said)
        number = {stem: at for at, stem in enumerate(counts)}
        pairs = {pair: at for at, pair in enumerate(sorted({p for one in sentences for p in pairwise(one)}))}
        total = sum(often.values())
        gains = np.array([math.log(1 + total / often[stem]) for stem in counts] + [0.0], np.float32)
        self.gains = gains / np.average(gains[:-1], weights=list(counts.values()))
        self.said = np.array([number.get(stem, len(number)) for stem in said])
        self.pairs_said = np.array([len(pairs), *(pairs.get(pair, len(pairs)) for pair in pairwise(said)), len(pairs)])
        self.sentences = [np.array([number[stem] for stem in one], np.int64) for one in sentences]
        self._pairs = [[pairs[pair] for pair in pairwise(one)] for one in sentences]
        self._sizes = len(number) + 1, len(pairs) + 1
        self.masses = np.array([self.gains[one].sum() * (1.0 if len(one) > 1 else _ALONE) for one in self.sentences])

    def match(self, steps: Sequence[int]) -> Costs:
        """Return the match costs [sentences, words] of some sentences."""
        found = np.empty((len(steps), len(self.said)), np.float32)
        for at in range(0, len(steps), _TOGETHER):
            some = steps[at : at + _TOGETHER]
            has = np.zeros((len(some), self._sizes[0]), bool)
            has_pair = np.zeros((len(some), self._sizes[1]), bool)
            for row, step in enumerate(some):
                has[row, self.sentences[step]] = True
                has_pair[row, self._pairs[step]] = True
            beside = has_pair[:, self.pairs_said]
            beside = beside[:, :-1] | beside[:, 1:]
            gain = self.gains[self.said] * np.where(beside, np.float32(1), np.float32(_ALONE))
            found[at : at + len(some)] = np.where(has[:, self.said], -gain, np.float32(_MISMATCH))
        return found

    def to_the_word(self, step: int, first: int, last: int, taken: NDArray[np.bool_]) -> tuple[int, int, float]:
        """Return the first and last word of a sentence, and the share of it that is said between them.

        Words at its ends that were transcribed otherwise are counted from those that were not.
        """
        stems = self.sentences[step]
        said = self.said[first : last + 1]
        match = np.where(stems[:, None] == said[None], -self.gains[said], np.float32(np.inf)).astype(np.float32)
        labels = Problem(_chain(len(stems)), match, 0.0, skip=0.0).align("exact").labels
        assert labels is not None
        matched = np.flatnonzero(labels >= 0)
        if not len(matched):
            return first, last, 0.0
        share = float(self.gains[stems[np.unique(labels[matched])]].sum() / self.gains[stems].sum())
        begin, end = first + int(matched[0]), first + int(matched[-1])
        for _ in range(min(int(labels[matched[0]]), _MOST_MISSING)):
            if begin == 0 or (taken[begin - 1] and begin - 1 < first):
                break
            begin -= 1
        for _ in range(min(len(stems) - 1 - int(labels[matched[-1]]), _MOST_MISSING)):
            if end + 1 >= len(self.said) or (taken[end + 1] and end + 1 > last):
                break
            end += 1
        return begin, end, share


@lru_cache(maxsize=256)
def _chain(length: int) -> TSortGraph:
    return TSortGraph.compile(FlowGraph.chain([str(at) for at in range(length)]))


def _confidence(share: float, words: int) -> float:
    constant, of_share, of_words = _CALIBRATION
    return 1 / (1 + math.exp(-(constant + of_share * share + of_words * math.log(words))))


# -- paragraphs -------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Paragraphs that were aligned together: the words (first, last) of their sentences, where they are said."""

    groups: list[list[int]]
    places: dict[int, tuple[int, int]]
    cost: float
    bound: float


def _aligned(table: _Table, groups: list[list[int]]) -> tuple[list[tuple[int, int] | None], float, float]:
    """Align paragraphs; return the words of each sentence, the cost, and how far it may be above the optimum."""
    alone = {group[0]: _exact(table, [group]) for group in groups}
    parts = list(alone.values())
    while len({*(numbers := _collisions(parts, len(table.said)))}) < len(parts):
        merged: dict[int, list[_Part]] = {}
        for number, part in zip(numbers, parts, strict=True):
            merged.setdefault(number, []).append(part)
        parts = [
            some[0] if len(some) == 1 else _together(table, [alone[group[0]] for part in some for group in part.groups])
            for some in merged.values()
        ]
    places: list[tuple[int, int] | None] = [None] * len(table.sentences)
    for part in parts:
        for step, place in part.places.items():
            places[step] = place
    cost, bound = sum(part.cost for part in parts), sum(part.bound for part in parts)
    return places, cost, cost - bound if cost - bound > _ROUNDING * (1 + abs(cost)) else 0.0


def _collisions(parts: list[_Part], words: int) -> list[int]:
    """Return a number per part, the same for those that want the same words, directly or by others between."""
    of = list(range(len(parts)))
    owner = np.full(words, -1)
    for at, part in enumerate(parts):
        for first, last in part.places.values():
            for other in {of[one] for one in owner[first : last + 1].tolist() if one >= 0} - {of[at]}:
                of = [of[at] if one == other else one for one in of]
            owner[first : last + 1] = at
    return of


def _together(table: _Table, alone: list[_Part]) -> _Part:
    """Align paragraphs together: exactly where that is small, else one after the other, the surest first."""
    groups = [group for part in alone for group in part.groups]
    if math.prod(len(group) + 1 for group in groups) <= _MOST_STATES:
        return _exact(table, groups)
    taken = np.zeros(len(table.said), bool)
    places: dict[int, tuple[int, int]] = {}
    cost = 0.0
    for part in sorted(alone, key=lambda part: part.cost + _unsaid(table, part)):
        collides = any(taken[first : last + 1].any() for first, last in part.places.values())
        found = _exact(table, part.groups, taken) if collides else part
        for first, last in found.places.values():
            taken[first : last + 1] = True
        places |= found.places
        cost += found.cost
    return _Part(groups, places, cost, sum(part.bound for part in alone))


def _unsaid(table: _Table, part: _Part) -> float:
    """Return what it would gain to say nothing of a part: so much of its cost is no evidence."""
    return _LEAST_SHARE * float(table.masses[[step for group in part.groups for step in group]].sum())


def _exact(table: _Table, groups: list[list[int]], taken: NDArray[np.bool_] | None = None) -> _Part:
    """Align paragraphs, all orders of which are legal, with the words that are not taken."""
    steps = [step for group in groups for step in group]
    if len(steps) * len(table.said) > _MOST_CELLS:
        raise TooLargeError(
            f"{len(steps):,} sentences that keep their order and {len(table.said):,} words are too many at once: part "
            "the script into paragraphs by empty lines, and let them come in any order"
        )
    match = table.match(steps)
    if taken is not None:
        match[:, taken] = np.inf
    ends = np.cumsum([len(group) for group in groups]).tolist()
    edges = [(at, at + 1) for at in range(len(steps) - 1) if at + 1 not in ends]
    flow = FlowGraph.from_edges([str(step) for step in steps], edges)
    found = Problem(flow, match, 0.0, skip=-_LEAST_SHARE * table.masses[steps]).align("exact")
    assert found.labels is not None
    places = {steps[one.step]: (one.start, one.stop - 1) for one in found.segments}
    return _Part(groups, places, found.cost, found.cost)


# -- the result -------------------------------------------------------------------------------------------------


def _flow(paragraphs: Script, order: str, title: str) -> FlowGraph:
    steps = [(f"{p}.{s}", text) for p, one in enumerate(paragraphs, 1) for s, text in enumerate(one, 1)]
    ends = set() if order == "written" else {*np.cumsum([len(one) for one in paragraphs]).tolist()}
    return FlowGraph.from_edges(steps, [(at, at + 1) for at in range(len(steps) - 1) if at + 1 not in ends], title)


def _grounding(
    flow: FlowGraph, found: ScriptAlignment, transcript: Transcript, video: str | None, options: dict[str, Any]
) -> Grounding:
    segments = sorted(
        (
            GroundedSegment(
                step,
                flow.ids[step],
                flow.texts[step],
                one.start,
                max(one.end, one.start + _LEAST_SECONDS),
                one.confidence,
                why="" if one.confidence >= _SURE else "much of it is said in other words",
            )
            for step, one in enumerate(found.sentences)
            if one is not None
        ),
        key=lambda one: (one.start, one.end),
    )
    count = clips_of(max(transcript.duration, *(one.end for one in segments), _CLIP_SECONDS), _CLIP_SECONDS)
    middles = (np.arange(count) + 0.5) * _CLIP_SECONDS
    labels = np.full(count, -1, np.int64)
    for one in segments:
        labels[slice(*np.searchsorted(middles, [one.start, one.end]))] = one.step
    return Grounding(
        flow=flow,
        segments=tuple(segments),
        not_shown=tuple(step for step, one in enumerate(found.sentences) if one is None),
        order=tuple(one.step for one in segments),
        cost=found.cost,
        labels=labels,
        clip_seconds=_CLIP_SECONDS,
        options=options | {"alignment": {"method": "exact" if found.gap == 0 else "anytime", "gap": found.gap}},
        video=video,
        cues=tuple(transcript.cues),
    )
