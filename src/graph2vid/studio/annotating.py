"""Annotations made elsewhere become corrections."""

from __future__ import annotations

import csv
import io
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from graph2vid._files import parse_json
from graph2vid._values import number_of
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.export import read_annotations, read_video_annotations
from graph2vid.flow import FlowGraph
from graph2vid.grounding import format_time
from graph2vid.studio import models
from graph2vid.studio.corrections import Correction, with_correction
from graph2vid.studio.places import upload_name
from graph2vid.studio.projects import Take
from graph2vid.text import decoded

_USUAL_RATE = 25.0
Spans = list[tuple[float | None, float | None]]


def imported(take: Take, data: bytes, name: str, several: bool) -> models.Imported:
    """Turn annotations into corrections of a video, or of the videos of its project that they name.

    A step that is annotated is held to its span, one that is said not to be shown is kept out; others stay as they
    are. Nothing is changed where anything is wrong.
    """
    project = take.project
    if project.draft is None:
        raise InputError("there is no flow graph yet: the names of steps cannot be told")
    flow = project.draft.flow
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / upload_name(name)
        try:
            if path.suffix.lower() == ".json":
                path = path.with_suffix(".csv")
                path.write_text(_table_of_tasks(decoded(data, name), name), encoding="utf-8", newline="")
            else:
                path.write_bytes(data)
            if several:
                titles = {one.title: one for one in project.takes}
                read = read_video_annotations([path], flow, titles)
                found = [(titles[title], spans) for title, spans in read.items()]
            else:
                triples = [(one.step, one.start, one.end) for one in read_annotations(path, flow)]
                found = [(take, triples)]  # type: ignore[list-item]
        except Graph2VidError as error:
            raise type(error)(str(error).replace(str(path), name)) from None
    notes: list[str] = []
    with project.lock:
        known = [(one, _corrected(one, spans, flow, notes)) for one, spans in found]
        for one, corrections in known:
            one.correct(corrections)
    videos = [models.VideoName(id=one.id, title=one.title) for one, _ in known]
    return models.Imported(videos=videos, corrections=sum(len(spans) for _, spans in found), notes=notes)


def _corrected(
    take: Take, annotations: Iterable[tuple[int, float | None, float | None]], flow: FlowGraph, notes: list[str]
) -> tuple[Correction, ...]:
    """Return the corrections of a video with what annotations say; what is lost on the way is added to ``notes``."""
    spans: dict[int, Spans] = defaultdict(list)
    for step, start, end in annotations:
        spans[step].append((start, end))
    known = tuple(one for one in take.corrections if one.step not in {flow.ids[step] for step in spans})
    for step, of_step in spans.items():
        shown = [(start, end) for start, end in of_step if start is not None and end is not None]
        if not shown:
            known = with_correction(known, Correction("forbid", flow.ids[step], -math.inf, math.inf), flow)
            continue
        start, end = max(shown, key=lambda span: span[1] - span[0])
        if len(shown) > 1:
            where = f"the longest, at {format_time(start)}, is kept"
            notes.append(f"{take.title}: step {step + 1} is annotated {len(shown)} times; {where}")
        known = with_correction(known, Correction("exact", flow.ids[step], start, end), flow)
    return known


def _table_of_tasks(text: str, source: str) -> str:
    """Return tasks of Label Studio as a table with the columns video, step, start and end."""
    tasks = parse_json(text, source)
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["video", "step", "start", "end"])
    try:
        for task in tasks if isinstance(tasks, list) else [tasks]:
            rows.writerows(_rows_of_task(task, source))
    except (TypeError, KeyError, AttributeError, IndexError):
        raise FormatError(f"{source} holds no tasks of Label Studio with regions on a timeline") from None
    return table.getvalue()


def _rows_of_task(task: dict[str, Any], source: str) -> Iterator[list[Any]]:
    """Go through the regions of what a person annotated, or of a prediction where nobody has."""
    about = task["data"]
    name = PurePosixPath(str(about.get("video") or about.get("audio") or about.get("video_url") or "")).name
    rate = number_of(about.get("fps", _USUAL_RATE), f"{source}: fps")
    made = [one for one in task.get("annotations") or task.get("completions") or () if not one.get("was_cancelled")]
    for region in (made or task["predictions"])[0]["result"]:
        value = region["value"]
        labels = next((value[kind] for kind in ("timelinelabels", "labels") if kind in value), None)
        if labels is None:
            continue
        if "ranges" in value:  # frames, from 1
            spans = [((one["start"] - 1) / rate, one["end"] / rate) for one in value["ranges"]]
        else:
            spans = [(value["start"], value["end"])]
        yield from ([name, labels[0], start, end] for start, end in spans)
