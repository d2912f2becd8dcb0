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
from graph2vid.evidence import Cue, clips_of, fingerprint, probe
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding, is_url
from graph2vid.grounding.same_material import Spans, Stretch, common_stretches, missing
from graph2vid.grounding.times import format_time

LEAST_SHARE = 0.2
"""Of the shorter video that must be in both; otherwise they are different videos."""

_JOINED = 2.0  # seconds of new material inside of a segment that do not part it
_LEAST_PART = 1.0  # seconds; what is left of a segment beside a cut
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
    progress: Callable[..., None] | None = None,
) -> Transfer:
    """Carry a grounding to another cut, upload, encoding or speed (up to 6%) of the same material.

    The sound of both videos is compared; nothing is transcribed and nothing grounded anew.

    Parameters
    ----------
    grounding : Grounding
        Of the first video.
    video : path
        The other video.
    source : path, optional
        The first video; by default the one that the grounding names.
    progress : callable, optional
        Called as (stage, done, total).

    Raises
    ------
    InputError
        The first video is not there, one has no sound, or they are different videos.
    """
    first, other = Path(source or grounding.video or ""), Path(video)
    if not first.name or is_url(str(first)) or not first.is_file():
        named = first if first.name else "not named"
        raise InputError(f"the video that the result is of must be there to be compared ({named}): name it (--source)")
    lengths = [probe(path).duration for path in (first, other)]
    prints = []
    for path, length, which in zip((first, other), lengths, ("first", "other"), strict=True):

        def tell(done: float, length: float = length, which: str = which) -> None:
            if progress is not None:
                progress(f"reading the sound of the {which} video", min(done, length), length)

        prints.append(fingerprint(path, progress=tell))
    if progress is not None:
        progress("comparing them")
    found = tuple(_within(one, *lengths) for one in common_stretches(*prints))
    share = sum(one.end - one.start for one in found) / max(min(lengths), 1e-9)
    if not found or share < LEAST_SHARE:
        much = f"{share:.0%} of the shorter one" if found else "nothing"
        raise InputError(
            f"{other} is not the same material as {first}: {much} is in both ({LEAST_SHARE:.0%} are needed); ground it "
            "anew with `graph2vid ground`"
        )
    cut, added = missing(found, *lengths)
    carried = carry(grounding, found, lengths[1], str(other))
    gone = tuple(step for step in grounding.order if step not in carried.order)
    result = Transfer(carried, found, cut, added, gone, min(share, 1.0))
    about = result.to_json() | {"from": str(first)}
    return replace(result, grounding=replace(carried, options=carried.options | {"transfer": about}))


def _within(stretch: Stretch, source_seconds: float, seconds: float) -> Stretch:
    """Return a stretch that ends where the shorter of its ends allows; moments are longer than what is left."""
    ends = min(stretch.source_end, source_seconds)
    end = min(stretch.to_other(ends), seconds)
    return stretch._replace(source_end=stretch.to_source(end), end=end)


def carry(grounding: Grounding, stretches: tuple[Stretch, ...], seconds: float, video: str) -> Grounding:
    """Return a grounding on the clock of another video.

    Parameters
    ----------
    grounding : Grounding
    stretches : tuple of Stretch
        What the videos have in common.
    seconds : float
        How long the other video lasts.
    video : str
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
