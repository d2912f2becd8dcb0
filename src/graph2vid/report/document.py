"""What a view of a grounding shows, as one JSON document: the report and the studio draw it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence import Cue, Plausibility
from graph2vid.flow import FlowGraph, Layout, colour_of, ink_on, lay_out
from graph2vid.flow.svg import wrapped
from graph2vid.grounding import Conflict, GroundedSegment, Grounding, OrderCheck, file_name, pack

KIND = "graph2vid-view"
VERSION = 2

Spans = Iterable[tuple[int, float, float]]
"""Step, start and end in seconds."""

_TEXT_SIZE, _LINE, _MOST_LINES = 13.0, 17.0, 6
_TEXT_WIDTHS = (160.0, 136.0, 112.0)  # columns of text; a narrower one where the graph is broad
_PANEL_WIDTH = 500.0
_HEAD = 30.0  # of a box: number and time
_FOOT = 10.0
_MARK = 15.0  # of a box: a line that says whether the step need be done
_MOST_CELLS = 120_000  # of the evidence; more would not be seen, and would make the report large
_MOST_SEGMENTS = 800


def view_model(
    grounding: Grounding,
    *,
    compare: Mapping[str, Grounding | Spans] | None = None,
    check: OrderCheck | None = None,
    video_url: str | None = None,
    numbers: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return what a view of a grounding shows.

    Parameters
    ----------
    grounding : Grounding
        K steps, N clips.
    compare : mapping of str to Grounding or iterable of (int, float, float), optional
        What to set beside it, by name: groundings of the same steps (by id), or step, start and end in seconds each.
    check : OrderCheck, optional
        Where the video does not follow its procedure, as :func:`graph2vid.grounding.check_order` finds it.
    video_url : str, optional
        Where the page finds the video; without it there is none to play.
    numbers : mapping of str to int, optional
        The numbers of steps by their ids, where the procedure has changed since: a step that is not there has none. By
        default the places in the grounding's own flow graph.

    Returns
    -------
    dict
        Fit for JSON. Steps are indices, times are seconds. The ``number`` of a step is its place in the procedure, its
        ``place`` that in the order found.
    """
    flow = grounding.flow
    place = {step: number for number, step in enumerate(grounding.order, start=1)}
    segments = [_segment(part) for part in grounding.segments]
    number = [index + 1 if numbers is None else numbers.get(step) for index, step in enumerate(flow.ids)]
    colours = [colour_of(index if found is None else found - 1) for index, found in enumerate(number)]
    name = grounding.video or video_url or ""
    return {
        "format": KIND,
        "version": VERSION,
        "graph2vid": grounding.version,
        "title": flow.title,
        "clip_seconds": grounding.clip_seconds,
        "offset": grounding.offset,
        "end": grounding.end,
        "video": None if video_url is None else {"url": video_url, "name": file_name(name) or name},
        "steps": [
            {
                "id": step.id,
                "number": number[index],
                "text": step.text or step.id,
                "colour": colours[index],
                "ink": ink_on(colours[index]),
                "place": place.get(index),
                "after": list(flow.predecessors[index]),
                "absent": round(grounding.absent[index], 4) if grounding.absent else None,
                "doubtful": index in grounding.count.doubtful,
                "optional": index in flow.optional,
                "instead_of": _instead_of(flow, index),
                "untaken": index in grounding.count.untaken
                and any(other in place for other in _instead_of(flow, index)),
            }
            for index, step in enumerate(flow.steps)
        ],
        "order": list(grounding.order),
        "not_shown": list(grounding.not_shown),
        "segments": _joined(segments, grounding.duration),
        "background": _background(grounding),
        "graph": _graph(flow),
        "cues": [_cue(cue) for cue in grounding.cues],
        "evidence": _evidence(grounding),
        "rows": [
            {"name": name, "segments": _joined(_compared(name, found, flow), grounding.duration)}
            for name, found in (compare or {}).items()
        ],
        "count": grounding.count.to_json() | {"words": str(grounding.count)},
        "facts": _facts(grounding),
        "conflicts": [vars(one) for one in conflicts_of(grounding)],
        "elsewhere": [asdict(one) for one in grounding.elsewhere],
        "check": None if check is None else _checked(check, number),
    }


def conflicts_of(grounding: Grounding) -> list[Conflict]:
    """Return the edges that fight the evidence, the worst first, as far as the result names them."""
    return [Conflict.from_json(one, grounding.flow) for one in grounding.options.get("conflicts") or ()]


def mark_of(flow: FlowGraph, step: int) -> str:
    """Say in a word or two whether a step need be done: "optional", "either", "or"; empty if it must."""
    words = ["optional"] if step in flow.optional else []
    for number, group in enumerate(flow.alternatives, start=1):
        for place, branch in enumerate(group):
            if step in branch:
                which = f" (choice {number})" if len(flow.alternatives) > 1 else ""
                words.append(f"{'or' if place else 'either'}{which}")
    return ", ".join(words)


def _checked(check: OrderCheck, numbers: Sequence[int | None]) -> dict[str, Any]:
    found = {"follows": check.follows, "verdict": check.verdict}
    for key, some in (("deviations", check.deviations), ("unsure", check.unsure)):
        found[key] = [
            {"kind": one.kind, "step": one.step, "start": one.start, "end": one.end}
            | {"certainty": round(one.certainty, 4), "words": check.words(one, numbers)}
            for one in some
        ]
    return found


def _cue(cue: Cue) -> list[Any]:
    """Return a cue; one that was read off the picture with its kind and its box."""
    found = [round(cue.start, 3), round(cue.end, 3), cue.text]
    return [*found, cue.kind, list(cue.box)] if cue.box is not None else found


def _facts(grounding: Grounding) -> dict[str, Any]:
    narration = grounding.options.get("narration", grounding.options.get("on_screen"))
    about = narration if isinstance(narration, dict) else {}
    probability = about.get("plausibility")
    unlikely = isinstance(probability, float) and Plausibility(0.0, probability).is_unlikely
    uncalibrated = grounding.is_uncalibrated
    return {"cost": grounding.cost, "narration": about or None, "unlikely": unlikely, "uncalibrated": uncalibrated}


def _segment(part: GroundedSegment) -> dict[str, Any]:
    """Return a segment; a margin without limit is "inf", as in result files."""
    sure = None if part.confidence is None else round(part.confidence, 4)
    spare = part.margin
    more = None if spare is None else round(spare, 3) if math.isfinite(spare) else "inf"
    return _span(part.step, part.start, part.end) | {
        "confidence": sure,
        "margin": more,
        "uncalibrated": part.sureness == "uncalibrated",
        "why": part.why,
    }


def _span(step: int, start: float, end: float) -> dict[str, Any]:
    """Return a segment of which nothing more is known."""
    known = {"confidence": None, "margin": None, "uncalibrated": False, "why": ""}
    return {"step": step, "start": start, "end": end, **known}


def _compared(name: str, found: Grounding | Spans, flow: FlowGraph) -> list[dict[str, Any]]:
    if not isinstance(found, Grounding):
        return [_span(*span) for span in sorted(found, key=lambda span: span[1:])]
    unknown = {part.id for part in found.segments} - set(flow.ids)
    if unknown:
        raise InputError(f"{name!r} cannot be compared: the step {min(unknown)!r} is not one of this procedure")
    return [_segment(part) | {"step": flow.index(part.id), "margin": None} for part in found.segments]


def _joined(segments: Sequence[dict[str, Any]], duration: float) -> list[dict[str, Any]]:
    """Return segments few enough to be drawn: where there are very many, those of one step that hardly part are one."""
    if len(segments) <= _MOST_SEGMENTS:
        return list(segments)
    joined: list[dict[str, Any]] = []
    for segment in segments:
        last = joined[-1] if joined else segment
        is_near = last["step"] == segment["step"] and segment["start"] - last["end"] <= duration / _MOST_SEGMENTS
        if last is segment or not is_near:
            joined.append(dict(segment))
            continue
        for key in ("confidence", "margin"):
            if last[key] is not None and segment[key] is not None:
                last[key] = min(last[key], segment[key], key=float)
        last["end"] = segment["end"]
    return joined


def _background(grounding: Grounding) -> list[list[float]]:
    """Return the spans that show no step, as start and end in seconds."""
    idle = np.concatenate(([False], grounding.labels < 0, [False]))
    turns = np.flatnonzero(idle[1:] != idle[:-1])
    times = grounding.offset + turns * grounding.clip_seconds
    spans: list[list[float]] = times.reshape(-1, 2).tolist()
    by_length = sorted(spans, key=lambda span: span[1] - span[0])
    return spans if len(spans) <= _MOST_SEGMENTS else sorted(by_length[-_MOST_SEGMENTS:])


def _instead_of(flow: FlowGraph, step: int) -> list[int]:
    """Return the steps of the other branches of the alternatives that a step belongs to."""
    groups = [group for group in flow.alternatives if any(step in branch for branch in group)]
    return [other for group in groups for branch in group if step not in branch for other in branch]


def _graph(flow: FlowGraph) -> dict[str, Any]:
    """Return where the steps are drawn; links that others imply are left out."""
    reduced = flow.transitive_reduction()
    marks = [mark_of(flow, step) for step in range(len(flow))]
    for text_width in _TEXT_WIDTHS:
        lines = [wrapped(step.text or step.id, _TEXT_SIZE, text_width, _MOST_LINES) for step in flow.steps]
        heights = [
            _HEAD + _MARK * bool(mark) + _LINE * len(text) + _FOOT for mark, text in zip(marks, lines, strict=True)
        ]
        plan = lay_out(reduced, [(text_width + 24.0, height) for height in heights])
        if plan.width <= _PANEL_WIDTH:
            break
    return drawn_plan(
        plan,
        [{"mark": mark, "lines": texts} for mark, texts in zip(marks, lines, strict=True)],
        {edge: {"confidence": reduced.confidence[edge]} for edge in reduced.edges},
    )


def drawn_plan(
    plan: Layout, boxes: Sequence[dict[str, Any]], edges: Mapping[tuple[int, int], dict[str, Any]]
) -> dict[str, Any]:
    """Return a layout in tenths of a pixel, for JSON, with what else is known of its boxes and edges."""
    places = [{key: round(getattr(box, key), 1) for key in ("x", "y", "width", "height")} for box in plan.boxes]
    lanes = {edge: [[round(at, 1) for at in lane] for lane in plan.lanes.get(edge, ())] for edge in edges}
    return {
        "width": round(plan.width, 1),
        "height": round(plan.height, 1),
        "boxes": [place | box for place, box in zip(places, boxes, strict=True)],
        "edges": [{"from": edge[0], "to": edge[1], **known, "lanes": lanes[edge]} for edge, known in edges.items()],
    }


def _evidence(grounding: Grounding) -> dict[str, Any] | None:
    """Return the evidence as bytes, and that of each source apart; of a long video, means of neighbouring clips."""
    evidence = grounding.evidence
    if evidence is None or not evidence.size:
        return None
    apart = [{"name": name, **_cells(nats)} for name, nats in grounding.sources.items()]
    pool = -(-evidence.size // _MOST_CELLS)
    return _cells(evidence) | {"clip_seconds": grounding.clip_seconds * pool, "sources": apart}


def _cells(evidence: NDArray[np.float64]) -> dict[str, Any]:
    """Return evidence as bytes; extremes are cut off."""
    finite = evidence[np.isfinite(evidence)]
    low, high = np.percentile(finite, [2.0, 99.5]) if finite.size else (0.0, 0.0)
    evidence = np.clip(evidence, low, high)
    pool = -(-evidence.size // _MOST_CELLS)
    if pool > 1:
        starts = np.arange(0, evidence.shape[1], pool)
        sizes = np.diff(np.append(starts, evidence.shape[1]))
        evidence = np.add.reduceat(evidence, starts, axis=1) / sizes
    return pack(evidence)
