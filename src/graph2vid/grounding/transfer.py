"""A grounding carried to another cut or upload of the same material."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import Cache, Cue, clips_of, fingerprint, is_captions, probe, transcript_of
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding, is_url
from graph2vid.grounding.same_material import Spans, Stretch, common_stretches, missing
from graph2vid.grounding.script_alignment import Said, align_script
from graph2vid.grounding.times import format_time

LEAST_SHARE = 0.2
"""Of the shorter video that must be in both; otherwise they are different videos."""

_JOINED = 2.0  # seconds of new material inside of a segment that do not part it
_LEAST_PART = 1.0  # seconds; what is left of a segment beside a cut
_NEAR, _STEEPEST = 1.0, 0.06  # seconds by which words of one stretch may be off, and by how much speeds may differ
_AROUND = 2.0  # seconds before the first words of a stretch that belong to it
_OTHER_SPEED = 0.004  # from which on it is worth saying
_HALF = 0.5  # of a segment that must be there, so that it is not doubtful


@dataclass(frozen=True)
class Transfer:
    """A grounding carried to another video, and what the two videos have in common.

    Attributes
    ----------
    grounding : Grounding
        Of the other video.
    stretches : tuple of Stretch
        What both have, in order of time.
    cut, added : tuple of (float, float)
        What the first video has alone, in its seconds; and what the other has alone, in its own.
    gone : tuple of int
        The steps that the first video shows, and the other does not.
    share : float
        How much of the shorter video is in both.
    """

    grounding: Grounding
    stretches: tuple[Stretch, ...]
    cut: Spans
    added: Spans
    gone: tuple[int, ...]
    share: float

    @property
    def agreement(self) -> float:
        """How sure it is that the stretches are the same: their mean agreement, by length."""
        seconds = [one.end - one.start for one in self.stretches]
        return float(np.average([one.agreement for one in self.stretches], weights=seconds))

    def to_json(self) -> dict[str, Any]:
        """Return what the videos have in common as a JSON document; times in seconds."""
        return {
            "share": self.share,
            "agreement": self.agreement,
            "stretches": [one._asdict() for one in self.stretches],
            "cut": [list(span) for span in self.cut],
            "added": [list(span) for span in self.added],
            "gone": [self.grounding.flow.ids[step] for step in self.gone],
        }


def transfer(
    grounding: Grounding,
    video: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    captions: str | os.PathLike[str] | None = None,
    progress: Callable[..., None] | None = None,
) -> Transfer:
    """Carry a grounding to another cut, upload, encoding or speed (up to 6%) of the same material.

    The sound of both videos is compared, and nothing is transcribed. Where the first video is no longer there, or the
    other is captions, the transcript that the grounding holds is compared with that of the other.

    Parameters
    ----------
    grounding : Grounding
        Of the first video.
    video : path
        The other video.
    source : path, optional
        The first video; by default the one that the grounding names.
    captions : path, optional
        Captions of the other video: transcripts are compared.
    progress : callable, optional
        Called as (stage, done, total).

    Raises
    ------
    InputError
        The first video is not there, one has no sound, or they are different videos.
    """
    first, other = Path(source or grounding.video or ""), Path(video)
    is_there = bool(first.name) and not is_url(str(first)) and first.is_file()
    if is_there and captions is None and not is_captions(other):
        lengths, found = _by_sound(first, other, progress)
    elif grounding.cues and source is None:
        lengths, found = _by_words(grounding, other, captions, progress)
    else:
        named = first if first.name else "not named"
        raise InputError(f"the video that the result is of must be there to be compared ({named}): name it (--source)")
    share = sum(one.end - one.start for one in found) / max(min(lengths), 1e-9)
    if not found or share < LEAST_SHARE:
        much = f"{share:.0%} of the shorter one" if found else "nothing"
        raise InputError(
            f"{other} is not the same material as {first if first.name else 'the first video'}: {much} is in both "
            f"({LEAST_SHARE:.0%} are needed); ground it anew with `graph2vid ground`"
        )
    cut, added = missing(found, *lengths)
    carried = carry(grounding, found, lengths[1], None if is_captions(other) else str(other))
    gone = tuple(step for step in grounding.order if step not in carried.order)
    result = Transfer(carried, found, cut, added, gone, min(share, 1.0))
    about = result.to_json() | {"from": str(first) if first.name else None}
    return replace(result, grounding=replace(carried, options=carried.options | {"transfer": about}))


def _by_sound(
    first: Path, other: Path, progress: Callable[..., None] | None
) -> tuple[list[float], tuple[Stretch, ...]]:
    """Return how long two videos last, and what they have in common by their sound."""
    lengths = [probe(path).duration for path in (first, other)]
    prints = []
    for path, length, which in zip((first, other), lengths, ("first", "other"), strict=True):

        def tell(done: float, length: float = length, which: str = which) -> None:
            if progress is not None:
                progress(f"reading the sound of the {which} video", min(done, length), length)

        prints.append(fingerprint(path, progress=tell))
    if progress is not None:
        progress("comparing them")
    return lengths, tuple(_within(one, *lengths) for one in common_stretches(*prints))


def _by_words(
    grounding: Grounding,
    other: Path,
    captions: str | os.PathLike[str] | None,
    progress: Callable[..., None] | None,
) -> tuple[list[float], tuple[Stretch, ...]]:
    """Return how long two videos last, and what they have in common by their transcripts."""
    transcript = transcript_of(other, captions, cache=Cache(), progress=progress)
    told = align_script((tuple(cue.text for cue in grounding.cues),), transcript.cues, order="written").sentences
    pairs = [(cue, said) for cue, said in zip(grounding.cues, told, strict=True) if said is not None]
    runs: list[list[tuple[Cue, Said]]] = []
    for cue, said in pairs:
        if runs:
            before, then = runs[-1][-1]
            shift = (said.start - cue.start) - (then.start - before.start)
            if abs(shift) <= _NEAR + _STEEPEST * (cue.start - before.start):
                runs[-1].append((cue, said))
                continue
        runs.append([(cue, said)])
    lengths = [max(grounding.end, grounding.cues[-1].end), transcript.duration]
    # A stretch begins and ends a little outside of its words, but not in those of others.
    stretches = []
    for at, run in enumerate(runs):
        (cue, said), (last_cue, last_said) = run[0], run[-1]
        ends = (runs[at - 1][-1][0].end, runs[at - 1][-1][1].end) if at else (0.0, 0.0)
        after = (runs[at + 1][0][0].start, runs[at + 1][0][1].start) if at + 1 < len(runs) else tuple(lengths)
        early = max(min(cue.start - ends[0], said.start - ends[1], _AROUND) / (2 if at else 1), 0.0)
        room = min(after[0] - last_cue.end, after[1] - last_said.end, 2 * _AROUND)
        late = max(room / (2 if at + 1 < len(runs) else 1), 0.0)
        spans = cue.start - early, last_cue.end + late, said.start - early, last_said.end + late
        stretches.append(Stretch(*spans, float(np.mean([one.share for _, one in run]))))
    return lengths, tuple(stretches)


def _within(stretch: Stretch, source_seconds: float, seconds: float) -> Stretch:
    """Return a stretch that ends where the shorter of its ends allows; moments are longer than what is left."""
    ends = min(stretch.source_end, source_seconds)
    end = min(stretch.to_other(ends), seconds)
    return stretch._replace(source_end=stretch.to_source(end), end=end)


def carry(grounding: Grounding, stretches: tuple[Stretch, ...], seconds: float, video: str | None) -> Grounding:
    """Return a grounding on the clock of another video.

    Parameters
    ----------
    grounding : Grounding
    stretches : tuple of Stretch
        What the videos have in common.
    seconds : float
        How long the other video lasts.
    video : str or None
        Its name.
    """
    segments = sorted(
        (part for one in grounding.segments for part in _parts(one, stretches)), key=lambda one: (one.start, one.end)
    )
    count = clips_of(seconds, grounding.clip_seconds)
    middles: NDArray[np.float64] = (np.arange(count) + 0.5) * np.float64(grounding.clip_seconds)
    labels = np.full(count, -1, np.int64)
    for one in segments:
        labels[(middles >= one.start) & (middles < one.end)] = one.step
    order = tuple(dict.fromkeys(one.step for one in segments))
    cues = [
        replace(cue, start=spans[0][0], end=spans[-1][1], words=())
        for cue in grounding.cues
        if (spans := _spans(cue, stretches))
    ]
    return replace(
        grounding,
        segments=tuple(segments),
        not_shown=tuple(step for step in range(len(grounding.flow)) if step not in order),
        order=order,
        labels=labels,
        offset=0.0,
        video=video,
        cues=tuple(cues),
        evidence=_carried(grounding, stretches, middles),
        absent=(),
        probability=None,
    )


def _spans(one: GroundedSegment | Cue, stretches: tuple[Stretch, ...]) -> list[tuple[float, float, float]]:
    """Return where something is in the other video (start, end), and how many of its own seconds each span holds."""
    found: list[tuple[float, float, float]] = []
    for stretch in stretches:
        start, end = max(one.start, stretch.source_start), min(one.end, stretch.source_end)
        if end - start < min(_LEAST_PART, (one.end - one.start) / 2):
            continue
        span = stretch.to_other(start), stretch.to_other(end), end - start
        if found and span[0] - found[-1][1] <= _JOINED:
            span = found[-1][0], span[1], found[-1][2] + span[2]
            found.pop()
        found.append(span)
    return found


def _parts(segment: GroundedSegment, stretches: tuple[Stretch, ...]) -> list[GroundedSegment]:
    """Return what of a segment is in the other video: in parts where much was put between."""
    spans = _spans(segment, stretches)
    share = sum(kept for *_, kept in spans) / (segment.end - segment.start)
    why = segment.why or (f"only {share:.0%} of it are in this cut" if share < _HALF else "")
    return [replace(segment, start=start, end=end, why=why, margin=None) for start, end, _ in spans]


def _carried(
    grounding: Grounding, stretches: tuple[Stretch, ...], middles: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the evidence of the clips of the other video: that of the same moment; 0 for what is new."""
    if grounding.evidence is None:
        return None
    found = np.zeros((len(grounding.flow), len(middles)))
    for one in stretches:
        inside = np.flatnonzero((middles >= one.start) & (middles < one.end))
        times = np.array([one.to_source(at) for at in middles[inside]])
        clips = ((times - grounding.offset) // grounding.clip_seconds).astype(int)
        known = (clips >= 0) & (clips < grounding.evidence.shape[1])
        found[:, inside[known]] = grounding.evidence[:, clips[known]]
    return found


def describe_transfer(found: Transfer) -> list[str]:
    """Say in lines what two videos have in common, and what was cut or added."""
    pieces = f"{len(found.stretches)} {'stretch' if len(found.stretches) == 1 else 'stretches'}"
    lines = [f"the same material: {found.share:.0%} of the shorter video, in {pieces}, agreement {found.agreement:.0%}"]
    speeds = [one.speed - 1 for one in found.stretches if abs(one.speed - 1) >= _OTHER_SPEED]
    if speeds:
        told = sorted({f"{abs(speed):.1%} {'longer' if speed > 0 else 'shorter'}" for speed in speeds})
        lines.append(f"at another speed: it lasts {' or '.join(told)}")
    for name, spans in (("cut  ", found.cut), ("added", found.added)):
        lines += [f"{name} {format_time(start)}–{format_time(end)}  ({end - start:.1f} s)" for start, end in spans]
    texts = found.grounding.flow.texts
    lines += [f"gone  {step + 1}. {texts[step]}" for step in found.gone]
    return lines
