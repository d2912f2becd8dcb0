"""The result: when each step happens, in seconds, with what was not shown, and its file format."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from graph2vid import __version__
from graph2vid._files import check_format, read_json, write_json
from graph2vid.alignment.alignment_plot import Bar, Span, plot_lanes, plot_matrix, plot_rows
from graph2vid.errors import InputError
from graph2vid.evidence import Cue
from graph2vid.flow import FlowGraph
from graph2vid.grounding.doubt import Conflict, Elsewhere
from graph2vid.grounding.quantised import pack
from graph2vid.grounding.step_count import StepCount, count_steps
from graph2vid.grounding.times import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from graph2vid.grounding.clip_files import ClipFile
    from graph2vid.grounding.exporting import Exported

KIND = "graph2vid-grounding"
VERSION = 1


@dataclass(frozen=True)
class GroundedSegment:
    """One stretch of the video that shows one step.

    Attributes
    ----------
    step : int
        Index of the step in the flow graph.
    id, text : str
        The step's id and text.
    start, end : float
        Seconds.
    confidence : float or None
        The calibrated probability that this is right: the expected share of the segment's clips that show the step, in
        0 … 1. None if it was not computed, or if there is no calibrator for the evidence.
    margin : float or None
        How much more the best alternative costs, in which none of its clips shows the step; +∞ if there is none. None
        if it was not computed.
    posterior : float or None
        Mean posterior probability of the step over the segment's clips, which is not calibrated; None if it was not
        computed.
    why : str
        Why the segment is doubtful; empty where it is not.
    """

    step: int
    id: str
    text: str
    start: float
    end: float
    confidence: float | None = None
    margin: float | None = None
    posterior: float | None = None
    why: str = ""

    @property
    def is_doubtful(self) -> bool:
        """Whether one should not rely on it."""
        return bool(self.why)

    @property
    def sureness(self) -> str:
        """The confidence in words: a percentage, "uncalibrated", or nothing where it was not computed."""
        if self.confidence is not None:
            return f"{self.confidence:.0%}"
        return "" if self.posterior is None else "uncalibrated"

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.end - self.start

    def to_json(self) -> dict[str, Any]:
        """Return the segment as an entry of a JSON document; a margin without limit is "inf"."""
        entry = {"step": self.id, "text": self.text} | {
            key: getattr(self, key) for key in ("start", "end", "confidence", "posterior")
        }
        entry |= {"doubtful": self.is_doubtful} | ({"why": self.why} if self.why else {})
        margin = {} if self.margin is None else {"margin": self.margin if math.isfinite(self.margin) else "inf"}
        return entry | margin


@dataclass(frozen=True, eq=False)
class Grounding:
    """When each step of a procedure happens in a video.

    Attributes
    ----------
    flow : FlowGraph
        The procedure.
    segments : tuple of GroundedSegment
        In order of time.
    not_shown : tuple of int
        The steps that the video does not show.
    order : tuple of int
        The shown steps by their first appearance.
    cost : float
        The cost of the alignment.
    labels : int64 array [N]
        Per clip a step, or -1 for background. Read-only.
    clip_seconds, offset : float
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds`` seconds.
    options : dict
        The settings used, fit for JSON.
    version : str
        The version of graph2vid that made this.
    video : str or None
        The video: a path (from the working folder) or a URL; None if it is not known.
    cues : tuple of Cue
        Its transcript, as far as there is one.
    evidence : float array [K, N] or None
        By how much each step explains each clip better than background does, in units of cost: what is above zero
        speaks for the step. Read-only.
    absent : tuple of float
        The calibrated probability of each step that the video does not show it; empty where it is not known.
    probability : float array [K+1, N] or None
        The calibrated probability of each step, and of background (last), in each clip; not kept in files.
    sources : dict of str to float array [K, N]
        What each of several sources adds to the evidence (narration, on-screen text, frames, scores), in nats; empty
        where there is one.
    overruled : tuple of (int, int)
        The soft edges that the video shows the other way round.
    suspended : tuple of int
        Steps that a constraint pins where the guessed order does not expect them: it is not asked about them.
    elsewhere : tuple of Elsewhere
        Where steps that are doubtful or not shown may be, in seconds, if the order is left open.
    """

    flow: FlowGraph
    segments: tuple[GroundedSegment, ...]
    not_shown: tuple[int, ...]
    order: tuple[int, ...]
    cost: float
    labels: NDArray[np.int64]
    clip_seconds: float = 1.0
    offset: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    version: str = __version__
    video: str | None = None
    cues: tuple[Cue, ...] = ()
    evidence: NDArray[np.float64] | None = None
    absent: tuple[float, ...] = ()
    probability: NDArray[np.float64] | None = field(default=None, repr=False)
    sources: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    overruled: tuple[tuple[int, int], ...] = ()
    suspended: tuple[int, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        if self.evidence is not None:
            evidence = np.array(self.evidence, dtype=np.float64)
            shape = len(self.flow), len(labels)
            if evidence.shape != shape:
                raise InputError(f"the evidence has the shape {evidence.shape} and must have {shape}: steps × clips")
            evidence.flags.writeable = False
            object.__setattr__(self, "evidence", evidence)

    @property
    def duration(self) -> float:
        """Seconds that the clips cover together."""
        return len(self.labels) * self.clip_seconds

    @property
    def end(self) -> float:
        """Where the last clip ends, in seconds."""
        return self.offset + self.duration

    @cached_property
    def count(self) -> StepCount:
        """How many steps are shown, of how many that the procedure wants; see :class:`StepCount`."""
        sure = {segment.step for segment in self.segments if not segment.is_doubtful}
        return count_steps(self.flow, self.order, set(self.order) - sure if self.segments else ())

    @property
    def is_uncalibrated(self) -> bool:
        """Whether posteriors are known, and no calibrator that fits the evidence."""
        return any(one.confidence is None and one.posterior is not None for one in self.segments)

    @property
    def questions(self) -> tuple[str, ...]:
        """What to ask about the flow graph: edges that fight the evidence, the worst first."""
        told = self.options.get("conflicts") or ()
        return tuple(Conflict.from_json(one, self.flow).question(self.flow) for one in told)

    def segments_of(self, step: int | str) -> tuple[GroundedSegment, ...]:
        """Return the segments of one step (by index or id), in order of time; none if it is not shown."""
        index = self.flow.index(step)
        return tuple(segment for segment in self.segments if segment.step == index)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Grounding) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal by content, which holds a dict

    def __repr__(self) -> str:
        name = f"{self.flow.title!r}, " if self.flow.title else ""
        return f"Grounding({name}{self.count}, {format_time(self.offset)}–{format_time(self.end)}, cost {self.cost:g})"

    def __str__(self) -> str:
        lines = [repr(self)]
        for segment in self.segments:
            sure = f"  {segment.sureness:>4}" if segment.sureness else ""
            span = f"{format_time(segment.start)}–{format_time(segment.end)}"
            doubt = f" (doubtful: {segment.why})" if segment.why else ""
            lines.append(f"  {span:>17}{sure}  {segment.step + 1}. {segment.text}{doubt}")
        lines += [f"  {'not shown':>17}  {step + 1}. {self.flow.texts[step]}" for step in self.not_shown]
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a row per step (matplotlib), in the order of the video; what is less sure is paler.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, here and in the other plots; by default in a new figure.
        """
        return plot_lanes(self.flow, _bars(self, confidence=True), self._span, ax)

    def plot_bars(
        self,
        others: Mapping[str, Grounding | Iterable[tuple[int | str, float, float]]] | None = None,
        ax: Axes | None = None,
        *,
        name: str = "found",
    ) -> Axes:
        """Draw the segmentation as a coloured row (matplotlib), and others below it to compare.

        Parameters
        ----------
        others : mapping of str to Grounding or (step, start, end) each, optional
            Further rows, such as ``{"linear": other, "truth": [("mix", 12.0, 30.5)]}``; times in seconds.
        ax : matplotlib Axes, optional
        name : str
            What this row is called.
        """
        rows = {name: _bars(self)}
        for other, found in (others or {}).items():
            rows[other] = _bars(found) if isinstance(found, Grounding) else _of_spans(found, self.flow, other)
        return plot_rows(self.flow, rows, self._span, ax)

    def plot_evidence(self, ax: Axes | None = None) -> Axes:
        """Draw the evidence as a heat map, steps × time, and the path of the alignment on it (matplotlib)."""
        if self.evidence is None:
            raise InputError("this grounding holds no evidence to draw; ground again with this version of graph2vid")
        meaning = "evidence over background"
        return plot_matrix(self.flow, self.evidence, self.labels, self._span, ax, meaning=meaning, high_is_good=True)

    def plot_flow(self, ax: Axes | None = None) -> Axes:
        """Draw the flow graph (matplotlib) with the order that was found at the steps: 1st, 2nd, …."""
        return self.flow.plot(ax, order=self.order)

    def plot_tsort(self, ax: Axes | None = None) -> Axes:
        """Draw all legal orders of the procedure (matplotlib): its tSort graph, coloured by step."""
        from graph2vid.tsort import TSortGraph

        return TSortGraph.compile(self.flow).plot(ax)

    def _repr_svg_(self) -> str | None:
        from graph2vid.alignment.alignment_plot import lanes_svg

        if not len(self.labels):
            return None
        note = f"{self.count} · cost {self.cost:.6g}"
        return lanes_svg(self.flow, _bars(self, confidence=True), self._span, note)

    @property
    def _span(self) -> Span:
        return Span(self.offset, self.end, "time")

    def export(
        self,
        format: str,
        *,
        video: str | None = None,
        frame_rate: float | None = None,
        short_titles: bool = False,
        doubtful: str = "mark",
        images: Mapping[int, str] | None = None,
    ) -> Exported:
        """Write the grounding in the format of another program: see :func:`graph2vid.export.export`."""
        from graph2vid.grounding import exporting

        return exporting.export(
            self,
            format,
            video=video,
            frame_rate=frame_rate,
            short_titles=short_titles,
            doubtful=doubtful,
            images=images,
        )

    def clips(
        self,
        folder: str | os.PathLike[str],
        *,
        video: str | os.PathLike[str] | None = None,
        precise: bool = False,
        gif: bool = False,
        cards: Iterable[str] = (),
        doubtful: str = "mark",
    ) -> tuple[ClipFile, ...]:
        """Write a clip and a still per segment, a sheet and cards: see :func:`graph2vid.grounding.write_clips`."""
        from graph2vid.grounding.clip_files import write_clips

        return write_clips(self, folder, video=video, precise=precise, gif=gif, cards=cards, doubtful=doubtful)

    def to_frame(self) -> DataFrame:
        """Return the grounding as a table of pandas, with a row per segment.

        Segments stand in order of time, then a row without times per step that is not shown. Steps are numbered by
        their places in the procedure, from 1; ``order`` is their place in the order found. Times are seconds.
        """
        from graph2vid.grounding.segment_frames import to_frame

        return to_frame(self)

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        procedure: FlowGraph | Grounding,
        *,
        clip_seconds: float = 1.0,
        duration: float | None = None,
        video: str | None = None,
    ) -> Grounding:
        """Return the grounding that a table of pandas says: annotations, or a changed result.

        Parameters
        ----------
        frame : pandas.DataFrame
            A row per segment: ``id`` (or ``step``: the number from 1, the id or the text), ``start`` and ``end`` in
            seconds. ``confidence``, ``posterior``, ``margin`` and ``why`` are read where they are there. Rows without
            times, and steps without a row, are not shown.
        procedure : FlowGraph or Grounding
            Whose steps these are. Of a grounding everything else is kept: video, transcript, evidence, settings, cost.
        clip_seconds, duration : float, optional
            Seconds: the length of a clip, and of the video (by default up to the last segment); where no grounding
            says them. The cost is 0 then.
        video : str, optional
            A path or a URL.
        """
        from graph2vid.grounding.segment_frames import from_frame

        return from_frame(frame, procedure, clip_seconds=clip_seconds, duration=duration, video=video)

    # -- file
    # -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grounding as JSON, whole or not at all.

        A video beside the file, or in a folder beside it, is named from there: the two can be moved together.
        """
        document = self.to_json()
        if self.video is not None and not is_url(self.video):
            video, folder = Path(self.video).resolve(), Path(path).resolve().parent
            document["video"] = str(video.relative_to(folder) if video.is_relative_to(folder) else video)
        write_json(path, document)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Grounding:
        """Read a grounding that :meth:`save` wrote, with this version of graph2vid or an older one."""
        found = cls.from_json(read_json(path), source=str(path))
        if found.video is None or is_url(found.video):
            return found
        return replace(found, video=str(Path(path).parent / found.video))

    def to_json(self) -> dict[str, Any]:
        """Return the grounding as a JSON document: steps by id, labels by index into the flow's steps.

        ``steps`` and ``count`` say for other readers what follows from the rest: the number of each step (its place in
        the procedure), its place in the order found, and how many are shown. The times of single words are left out,
        and the evidence is rounded to 256 levels. What is not known of video, cues and evidence has no entry.
        """
        ids = self.flow.ids
        place = {step: at for at, step in enumerate(self.order, start=1)}
        known = {
            "video": self.video,
            "cues": [_plain_cue(cue) for cue in self.cues],
            "evidence": None if self.evidence is None else pack(self.evidence),
            "sources": {name: pack(nats) for name, nats in self.sources.items()},
            "overruled": [[ids[a], ids[b]] for a, b in self.overruled],
            "suspended": [ids[step] for step in self.suspended],
            "elsewhere": [one.to_json(self.flow) for one in self.elsewhere],
        }
        return {
            "format": KIND,
            "version": VERSION,
            "graph2vid": self.version,
            "flow": self.flow.to_json(),
            "clip_seconds": self.clip_seconds,
            "offset": self.offset,
            "duration": self.duration,
            "cost": self.cost,
            "segments": [segment.to_json() for segment in self.segments],
            "not_shown": [ids[step] for step in self.not_shown],
            "order": [ids[step] for step in self.order],
            "count": self.count.to_json(),
            "steps": [
                {"step": name, "number": step + 1, "order": place.get(step)}
                | ({"absent": self.absent[step]} if self.absent else {})
                for step, name in enumerate(ids)
            ],
            "labels": self.labels.tolist(),
            "options": self.options,
            **{key: value for key, value in known.items() if value},
        }

    @classmethod
    def from_json(cls, value: Any, *, source: str = "grounding") -> Grounding:
        """Read the parsed JSON document ``value``; ``source`` is what messages call it."""
        from graph2vid.grounding.grounding_reader import GroundingReader

        return GroundingReader(source).grounding(check_format(value, kind=KIND, version=VERSION, source=source))


def _bars(grounding: Grounding, *, confidence: bool = False) -> list[Bar]:
    return [
        Bar(one.step, one.start, one.end, one.confidence if confidence and one.confidence is not None else 1.0)
        for one in grounding.segments
    ]


def _of_spans(spans: Iterable[tuple[int | str, float, float]], flow: FlowGraph, name: str) -> list[Bar]:
    try:
        return [Bar(flow.index(step), float(start), float(end)) for step, start, end in spans]
    except (TypeError, ValueError) as error:
        raise InputError(f"row {name!r} must be a grounding, or (step, start, end) each: {error}") from error


def is_url(video: str) -> bool:
    """Say whether a video is named by a URL, and not by a path."""
    return "://" in video


def file_name(video: str) -> str:
    """Return the last part of a path or URL, without the URL's query; empty if there is none."""
    return PurePath(unquote(urlsplit(video).path) if is_url(video) else video).name


def _plain_cue(cue: Cue) -> dict[str, Any]:
    """Return a cue in a form fit for JSON; of text that was read off the picture also what it is, and where."""
    on_screen = {} if cue.box is None else {"kind": cue.kind, "box": [round(one, 4) for one in cue.box]}
    return {"start": cue.start, "end": cue.end, "text": cue.text} | on_screen
