"""Narrated how-tos: procedures as people write them, spoken in another legal order, and how well they are grounded.

A file of ``howto_texts/SPLIT`` holds the hard dependencies (``1<3<4``: step 1 before step 3 before step 4), the written
procedure, in which ``{3}`` marks the text of step 3 up to the next mark or the end of the line, and the script of a
video: a line per block, ``3:`` while step 3 is shown, ``-:`` for talk that belongs to no step.

``python -m tests.howtos [--split judging] [--parsers bag,linear,auto] [--details]`` prints a table. The sound and its
transcripts stay in ``.pytest_cache/d/howtos``, so that only the first run speaks and transcribes.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
import wave
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graph2vid.evidence import Cache
from graph2vid.evidence.evidence_cache import text_hash
from graph2vid.grounding import Grounding, ground
from tools.sample import voice

FOLDER = Path(__file__).parent / "howto_texts"
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "d" / "howtos"
SPLITS = ("judging", "development")
PARSERS = ("bag", "linear", "auto")

NEAR = 3.0
"""Seconds within which a segment begins where its step does."""

_MARK = re.compile(r"\{(\d+)\}([^{\n]*)")
_WORD = re.compile(r"[^\W_]+")
_BLOCK = re.compile(r"(-|\d+): (.+)")
_PAUSES = {"sentence": (0.3, 0.8), "block": (1.0, 4.0)}  # seconds: people talk on, and work in silence now and then


@dataclass(frozen=True)
class Voice:
    """A speaker of espeak-ng."""

    voice: str
    words_per_minute: int
    pitch: int


VOICES = (Voice("en-us", 150, 45), Voice("en-gb+f4", 160, 60), Voice("en-gb-x-rp", 175, 35))


@dataclass(frozen=True)
class Showing:
    """Seconds in which a step (from 1) is spoken of."""

    step: int
    start: float
    end: float


@dataclass(frozen=True)
class HowTo:
    """A written procedure and the script of a video that shows it in another order.

    Attributes
    ----------
    name : str
    text : str
        The procedure as it is given to the product.
    steps : dict of int to str
        The texts of the steps, numbered from 1 as they are written.
    needs : frozenset of (int, int)
        Hard dependencies: the first step must be done before the second.
    blocks : tuple of (int or None, tuple of str)
        The step shown, or None for talk, and the sentences spoken.
    voice : Voice
    """

    name: str
    text: str
    steps: dict[int, str]
    needs: frozenset[tuple[int, int]]
    blocks: tuple[tuple[int | None, tuple[str, ...]], ...]
    voice: Voice

    @classmethod
    def read(cls, path: Path, speaker: Voice) -> HowTo:
        """Read a how-to from its file."""
        head, written, video = re.split(r"=== (?:written|video)\n", path.read_text(encoding="utf-8"))
        chains = [[int(step) for step in chain.split("<")] for chain in head.removeprefix("needs:").split()]
        matches = [_BLOCK.fullmatch(line) for line in video.strip().splitlines()]
        return cls(
            path.stem,
            re.sub(r"\{\d+\}", "", written).strip() + "\n",
            {int(number): text.strip() for number, text in _MARK.findall(written)},
            frozenset(pair for chain in chains for pair in pairwise(chain)),
            tuple((None if m[1] == "-" else int(m[1]), tuple(re.split(r"(?<=[.?!]) ", m[2]))) for m in matches if m),
            speaker,
        )

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """Steps in the order in which they are shown first."""
        return tuple(dict.fromkeys(step for step, _ in self.blocks if step is not None))

    def steps_in(self, text: str) -> frozenset[int]:
        """Return the written steps that hold a text, or that it holds: a reader may join or part steps."""
        words = _words(text)
        written = {number: _words(step) for number, step in self.steps.items()}
        return frozenset(
            number for number, step in written.items() if words.strip() and (words in step or step in words)
        )


def _words(text: str) -> str:
    return " ".join(["", *_WORD.findall(text.lower()), ""])


def read_howtos(split: str) -> tuple[HowTo, ...]:
    """Read the how-tos of a split; the voices take turns."""
    paths = sorted((FOLDER / split).glob("*.txt"))
    return tuple(HowTo.read(path, VOICES[number % len(VOICES)]) for number, path in enumerate(paths))


def render(howto: HowTo, folder: Path = CACHE) -> tuple[Path, tuple[Showing, ...]]:
    """Speak the script of a how-to, once; return the WAV file and when each block that shows a step begins and ends."""
    key = text_hash(json.dumps([howto.blocks, astuple(howto.voice), _PAUSES]))[:16]
    sound, truth = (folder / f"{howto.name}-{key}{suffix}" for suffix in (".wav", ".json"))
    if not truth.exists():
        folder.mkdir(parents=True, exist_ok=True)
        showings = _speak(howto, sound)
        truth.write_text(json.dumps([asdict(showing) for showing in showings]), encoding="utf-8")
    return sound, tuple(Showing(**entry) for entry in json.loads(truth.read_text(encoding="utf-8")))


def _speak(howto: HowTo, path: Path) -> list[Showing]:
    random = np.random.default_rng(list(howto.name.encode()))
    pieces, length, start, showings = [], 0, 0, []
    for step, sentences in howto.blocks:
        for kind, sentence in [("block", sentences[0]), *(("sentence", later) for later in sentences[1:])]:
            silence = np.zeros(round(random.uniform(*_PAUSES[kind]) * voice.RATE), np.float32)
            spoken = voice.speak(sentence, **asdict(howto.voice))
            if kind == "block":
                start = length + len(silence)
            pieces += [silence, spoken]
            length += len(silence) + len(spoken)
        if step is not None:
            showings.append(Showing(step, start / voice.RATE, length / voice.RATE))
    pieces.append(np.zeros(voice.RATE, np.float32))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(voice.RATE)
        file.writeframes((32767 * np.clip(np.concatenate(pieces), -1, 1)).astype("<i2").tobytes())
    return showings


class Score(NamedTuple):
    """Counts of one how-to, or sums of several.

    Attributes
    ----------
    hits, total : int
        Steps with a segment that begins within :data:`NEAR` of one of their showings; steps that are shown.
    false : int
        Segments that begin farther than :data:`NEAR` from any showing of their step, or whose step is not shown.
    again, repeats : int
        Second showings with a segment that begins within :data:`NEAR` of theirs; second showings.
    """

    hits: int
    total: int
    false: int
    again: int
    repeats: int


@dataclass(frozen=True)
class Judgement:
    """A grounding of a how-to beside the truth."""

    howto: HowTo
    showings: tuple[Showing, ...]
    grounding: Grounding

    @cached_property
    def begun(self) -> frozenset[Showing]:
        """Showings near whose begin a segment of their step begins."""
        return frozenset(
            showing
            for steps, start in self._segments()
            for showing in self.showings
            if showing.step in steps and abs(start - showing.start) <= NEAR
        )

    @cached_property
    def false(self) -> tuple[tuple[float, str], ...]:
        """Begins and texts of the segments that lie where their step is not shown."""
        return tuple(
            (segment.start, segment.text)
            for segment, (steps, start) in zip(self.grounding.segments, self._segments(), strict=True)
            if not any(s.step in steps and s.start - NEAR <= start <= s.end + NEAR for s in self.showings)
        )

    @property
    def score(self) -> Score:
        second = [showing for number, showing in enumerate(self.showings) if self._is_second(number)]
        hits = {showing.step for showing in self.begun}
        again = self.begun.intersection(second)
        return Score(len(hits), len(self.howto.shown), len(self.false), len(again), len(second))

    def __str__(self) -> str:
        lines = [f"{self.howto.name}: {self.score}"]
        hits = {showing.step for showing in self.begun}
        missed = [showing for showing in self.showings if showing.step not in hits]
        lines += [f"  missed {s.start:6.1f}  {s.step}. {self.howto.steps[s.step]}" for s in missed]
        lines += [f"  false  {start:6.1f}  {text}" for start, text in self.false]
        return "\n".join(lines)

    def _segments(self) -> Iterator[tuple[frozenset[int], float]]:
        return ((self.howto.steps_in(segment.text), segment.start) for segment in self.grounding.segments)

    def _is_second(self, number: int) -> bool:
        return self.showings[number].step in {showing.step for showing in self.showings[:number]}


def judgements(parser: str, howtos: Iterable[HowTo], folder: Path = CACHE, **options: Any) -> Iterator[Judgement]:
    """Ground how-tos by their speech, with the flow graphs of a parser."""
    for howto in howtos:
        sound, showings = render(howto, folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            # Confidences say how sure segments are, not where they lie, and take most of the time.
            options = {"confidence": False} | options
            grounding = ground(howto.text, sound, parser=parser, cache=Cache(folder), **options)
        yield Judgement(howto, showings, grounding)


def total(scores: Iterable[Score]) -> Score:
    """Sum scores."""
    return Score(*map(sum, zip(*scores, strict=True)))


def judge(parser: str, splits: Iterable[str] = SPLITS, folder: Path = CACHE, **options: Any) -> Score:
    """Ground all how-tos of some splits with a parser, and sum the scores."""
    howtos = [howto for split in splits for howto in read_howtos(split)]
    return total(judgement.score for judgement in judgements(parser, howtos, folder, **options))


def main() -> None:
    """Print a table of steps found and false steps: a row per how-to, columns per parser."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--split", choices=SPLITS, action="append", help="all by default")
    command.add_argument("--parsers", default=",".join(PARSERS))
    command.add_argument("--repeat", help="the repeat cost of ground, such as auto")
    command.add_argument("--details", action="store_true", help="list the steps missed and the false ones")
    chosen = command.parse_args()
    parsers = chosen.parsers.split(",")
    print("| | " + " | ".join(f"{name}: found, false, again" for name in parsers) + " |")
    print("| --- |" + " --- |" * len(parsers))
    scores: dict[str, list[Score]] = {name: [] for name in parsers}
    for split in chosen.split or SPLITS:
        for howto in read_howtos(split):
            for name in parsers:
                (judgement,) = judgements(name, [howto], repeat=chosen.repeat)
                scores[name].append(judgement.score)
                if chosen.details:
                    print(name, judgement)
            print(_row(f"{split}/{howto.name}", [scores[name][-1] for name in parsers]), flush=True)
    print(_row("all", [total(scores[name]) for name in parsers]))


def _row(name: str, scores: Iterable[Score]) -> str:
    cells = [f"{s.hits}/{s.total}, {s.false}, {s.again}/{s.repeats}" for s in scores]
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
