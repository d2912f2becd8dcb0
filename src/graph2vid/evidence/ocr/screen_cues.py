"""From what is read in single frames to cues: text with begin, end, place and kind."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from statistics import median

from graph2vid.evidence.captions import Cue
from graph2vid.evidence.ocr.screen_reading import RATE, Reading
from graph2vid.evidence.ocr.text_reader import Line

CAPTION = "caption"
"""Text that may say what is being done."""
TITLE, INGREDIENTS, WATERMARK = "title", "ingredients", "watermark"

# Text came, or went, somewhere between the last frame that was looked at and this one, or one earlier.
_NOTICED, _MISSED = 1.0 / RATE, 0.5 / RATE
_GAP = 1.25  # seconds for which a line may be overlooked
_SAME = 0.8  # of the letters of two readings of one line
_NEAR = 0.6  # line heights between two readings of one line, at the most
_TOGETHER = 1.5  # seconds between the begins, or the ends, of lines that are one text
_BRIEF = 0.4  # seconds: what is there for less nobody could read

_ALWAYS = 0.5  # share of the video over which a watermark is there
_OFTEN = 5  # times that a text which is no caption comes back
_ADDRESS = re.compile(r"(?:^|\s)@\w{3,}|www\.|https?:|\w\.(?:com|net|org|tv)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"\b(subscribe|thanks? (you )?for watching|thank you|like and share|follow (me|us)|enjoy|bon app[eé]tit|the end|"
    r"link in|recipe below|see you|welcome)\b",
    re.IGNORECASE,
)
_EDGE_SHARE = 0.15  # of a video, at its begin: where titles stand
_LARGE = 1.35  # of the height of other lines
_HEADING = re.compile(r"^\W*(ingredients|you(?:'| wi)ll need|you need|what you need|materials|tools|supplies)\b", re.I)
_UNITS = (
    "cups?|c|tbsps?|tablespoons?|tsps?|teaspoons?|g|gr|grams?|kg|kilos?|mg|ml|cl|dl|l|lit(?:er|re)s?|oz|ounces?|lbs?|"
    "pounds?|cloves?|cans?|sticks?|slices?|pieces?|pcs|pinch(?:es)?|dash(?:es)?|handfuls?|bunch(?:es)?|packs?|packets?|"
    "sprigs?|stalks?|heads?|quarts?|pints?|large|small|medium"
)
_AMOUNT = r"(?:\d+(?:[.,/]\d+)?(?:\s?[½¼¾⅓⅔⅛])?|[½¼¾⅓⅔⅛]|an?|some|half an?)"
_MEASURED = rf"{_AMOUNT}(?:\s*[-–x×]\s*{_AMOUNT})?\s*(?:{_UNITS})\b\.?\s+\w"
_TIME = r"min(?:ute)?s?|h|hrs?|hours?|s|sec(?:ond)?s?|days?|times|degrees"  # "5 min" is nothing that one needs
_INGREDIENT = re.compile(rf"^\W*(?:{_MEASURED}|\d+\s+(?!(?:{_TIME})\b)[a-z]+\b\W*$)", re.IGNORECASE)


@dataclass
class _Track:
    """A line of text over time."""

    start: float
    seen: float
    end: float
    readings: list[Line] = field(default_factory=list)

    def text(self) -> str:
        """Return the reading that is most like all others: that which comes most often, or was read best."""
        best: dict[str, float] = defaultdict(float)
        for line in self.readings:
            best[line.text] += line.score + 0.01 * len(line.text)  # text that is still being written is shorter
        return max(best, key=lambda text: best[text])

    def box(self) -> tuple[float, float, float, float]:
        left, top, right, bottom = (
            median(values)
            for values in zip(
                *((r.left, r.top, r.left + r.width, r.top + r.height) for r in self.readings), strict=True
            )
        )
        return left, top, right - left, bottom - top


def screen_cues(readings: Sequence[Reading], duration: float) -> tuple[Cue, ...]:
    """Follow the text on the screen through a video.

    Parameters
    ----------
    readings : sequence of Reading
        What was read, in order of time.
    duration : float
        Seconds of the video.

    Returns
    -------
    tuple of Cue
        In order of time, each with ``kind`` and ``box``. Lines that come and go together and stand together are one
        cue.
    """
    texts = _texts(_tracks(readings, duration))
    kinds = _kinds(texts, duration)
    cues = [
        Cue(round(text.start, 3), round(text.end, 3), " ".join(text.lines), (), kind, text.box)
        for text, kind in zip(texts, kinds, strict=True)
    ]
    return tuple(sorted(cues, key=lambda cue: (cue.start, cue.end)))


# -- lines over time -----------------------------------------------------------------------------------------


def _tracks(readings: Sequence[Reading], duration: float) -> list[_Track]:
    done: list[_Track] = []
    there: list[_Track] = []
    before = 0.0
    for reading in readings:
        now = reading.seconds
        left = list(reading.lines)
        for track in there:
            match = max(left, key=lambda line: _alike(track.readings[-1], line), default=None)
            if match is not None and _alike(track.readings[-1], match) >= _SAME:
                left.remove(match)
                track.readings.append(match)
                track.seen, track.end = now, duration
            elif track.end == duration:  # the first time that it is not there
                track.end = max(now - _MISSED, track.seen)
        done += [track for track in there if now - track.end > _GAP]
        there = [track for track in there if now - track.end <= _GAP]
        there += [_Track(max(now - _NOTICED, before), now, duration, [line]) for line in left]
        before = now
    return [track for track in done + there if track.end - track.start > _BRIEF]


def _alike(one: Line, other: Line) -> float:
    """Return how likely two readings are one line, in 0 … 1."""
    height = max(one.height, other.height)
    if abs(one.top + one.height / 2 - other.top - other.height / 2) > _NEAR * height:
        return 0.0
    if min(one.left + one.width, other.left + other.width) < max(one.left, other.left):
        return 0.0
    first, second = sorted((_letters(one.text), _letters(other.text)), key=len)
    if len(first) >= 4 and second.startswith(first):  # it is being written
        return 0.99
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _letters(text: str) -> str:
    return "".join(text.casefold().split())


# -- lines that belong together ------------------------------------------------------------------------------


@dataclass
class _Text:
    """Lines that are one text."""

    start: float
    end: float
    lines: list[str]
    box: tuple[float, float, float, float]
    height: float


def _texts(tracks: Sequence[_Track]) -> list[_Text]:
    order = sorted(tracks, key=lambda track: (track.start, track.box()[1]))
    groups: list[list[_Track]] = []
    for track in order:
        near = next((group for group in groups if any(_belong(track, other) for other in group)), None)
        if near is None:
            groups.append([track])
        else:
            near.append(track)
    return [_joined(group) for group in groups]


def _belong(one: _Track, other: _Track) -> bool:
    """Say whether two lines are parts of one text: they come and go together, and stand together."""
    if abs(one.start - other.start) > _TOGETHER or abs(one.end - other.end) > _TOGETHER:
        return False
    (x, y, width, height), (u, v, breadth, depth) = one.box(), other.box()
    taller, lower = max(height, depth), min(height, depth)
    if taller > 1.7 * lower:
        return False
    beside = abs(y + height / 2 - v - depth / 2) < 0.5 * lower
    across = max(x, u) - min(x + width, u + breadth)
    if beside:
        return across < 1.5 * taller
    gap = max(y, v) - min(y + height, v + depth)
    return gap < 0.9 * taller and across < 0


def _joined(group: Sequence[_Track]) -> _Text:
    boxes = [track.box() for track in group]
    height = median(box[3] for box in boxes)
    rows = sorted(
        zip(boxes, group, strict=True), key=lambda pair: (round((pair[0][1]) / max(height, 1e-6)), pair[0][0])
    )
    left, top = (min(box[at] for box in boxes) for at in (0, 1))
    right, bottom = (max(box[at] + box[at + 2] for box in boxes) for at in (0, 1))
    place = tuple(round(one, 4) for one in (left, top, right - left, bottom - top))
    start, end = min(track.start for track in group), max(track.end for track in group)
    return _Text(start, end, [track.text() for _, track in rows], place, height)  # type: ignore[arg-type]


# -- kinds ---------------------------------------------------------------------------------------------------


def _kinds(texts: Sequence[_Text], duration: float) -> list[str]:
    """Say what each text is."""
    shown: dict[str, float] = defaultdict(float)
    times: Counter[str] = Counter()
    for text in texts:
        shown[_letters(" ".join(text.lines))] += text.end - text.start
        times[_letters(" ".join(text.lines))] += 1
    kinds = []
    usual = median([text.height for text in texts]) if texts else 0.0
    for text in texts:
        joined = " ".join(text.lines)
        letters = _letters(joined)
        always = shown[letters] > _ALWAYS * duration and len(texts) > 1
        back = times[letters] >= _OFTEN and shown[letters] > 0.2 * duration
        large = text.height > _LARGE * usual and text.start < _EDGE_SHARE * duration
        if always or back or _ADDRESS.search(joined):
            kinds.append(WATERMARK)
        elif is_list(text.lines):
            kinds.append(INGREDIENTS)
        elif large or _OPENING.search(joined):
            kinds.append(TITLE)
        else:
            kinds.append(CAPTION)
    return kinds


def is_list(lines: Iterable[str]) -> bool:
    """Say whether lines are a list of what is needed: amounts and things, and nothing that is done."""
    given = [line for line in lines if line.strip()]
    if given and _HEADING.match(given[0]):
        return True
    amounts = sum(bool(_INGREDIENT.match(line)) for line in given)
    return amounts > 0.5 * len(given)
