"""Annotations made elsewhere (ELAN, CSV), as ground truth or as a correction."""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph2vid._files import read_text
from graph2vid._values import count_of, read_number, table_rows
from graph2vid.alignment import Constraint
from graph2vid.errors import FormatError, InputError
from graph2vid.export.elan import read_elan
from graph2vid.export.shared import labels, one_line, text_of_cell, titles
from graph2vid.flow import FlowGraph, quoted, unknown_step
from graph2vid.grounding import Grounding, parse_time

_NAMES = ("id", "step", "label", "name", "text")  # columns that name the step, the best first


@dataclass(frozen=True)
class Annotation:
    """What somebody says about one step.

    Attributes
    ----------
    step : int
        Index of the step in the flow graph.
    start, end : float or None
        Seconds; None says that the video does not show the step.
    """

    step: int
    start: float | None
    end: float | None


def read_annotations(
    path: str | os.PathLike[str], flow: FlowGraph, *, tier: str | None = None
) -> tuple[Annotation, ...]:
    """Read when steps happen from an ELAN file (.eaf) or a table (.csv).

    Steps are named by id, by text, or as the exports name them. A table has a head with a column ``id`` (or ``step``,
    ``label``, ``name``, ``text``) and the columns ``start`` and ``end`` (seconds, or m:ss); others are ignored, and a
    row without times says that the step is not shown. Without a head its rows are the number of the step from 1, start
    and end, as in CrossTask.

    Parameters
    ----------
    path : path
        The file; what ``export`` wrote, corrected or not, or made by hand.
    flow : FlowGraph
        The procedure that the names belong to.
    tier : str, optional
        The tier of an ELAN file; by default "steps", or the only one with annotations.

    Returns
    -------
    tuple of Annotation
        In order of time; the steps that are not shown last.
    """
    suffix = Path(path).suffix.lower()
    steps = _steps_by_name(flow)
    if suffix == ".eaf":
        found = [
            _annotation(f"{path}, {start:g} s", _step(value, steps, flow, f"{path}"), start, end)
            for value, start, end in read_elan(path, tier)
        ]
    elif suffix == ".csv":
        found = list(_from_table(path, steps, flow))
    else:
        raise InputError(f"{path}: annotations are read from .eaf (ELAN) and .csv files, not {Path(path).suffix!r}")
    return tuple(sorted(found, key=lambda one: (one.start is None, one.start or 0.0, one.step)))


def read_video_annotations(
    paths: Iterable[str | os.PathLike[str]], flow: FlowGraph, videos: Iterable[str | os.PathLike[str]]
) -> dict[str, list[tuple[int, float, float]]]:
    """Read what several videos show, as :func:`graph2vid.grounding.adapt` takes it.

    Parameters
    ----------
    paths : iterable of path
        Files, or folders of files: annotations of one video (``.eaf``, ``.csv``, see :func:`read_annotations`), named
        as the video, with or without something and an underscore before it (CrossTask's ``TASK_VIDEO.csv``); one table
        (``.csv``) with a column ``video``; results of ``ground``, corrected or not (``.json``).
    flow : FlowGraph
    videos : iterable of path
        Those that they may be of.

    Returns
    -------
    dict of str to list of (int, float, float)
        By the path of the video: steps, starts and ends.
    """
    names = {name: str(video) for video in map(Path, videos) for name in (str(video), video.name, video.stem)}
    files = [
        file
        for path in map(Path, paths)
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        if not path.is_dir() or file.suffix.lower() in (".csv", ".eaf", ".json")
    ]
    found: dict[str, list[tuple[int, float, float]]] = {}
    for path in files:
        rows: dict[str, Iterable[Any]]
        if path.suffix.lower() == ".json":
            result = Grounding.load(path)
            if result.flow.texts != flow.texts:
                raise InputError(f"{path} is of another procedure ({result.flow.title!r})")
            rows = {Path(result.video or path).stem: result.segments}
        elif tables := _by_video(path):
            steps = _steps_by_name(flow)
            rows = {video: list(_from_table(path, steps, flow, video)) for video in tables}
        else:
            rows = {path.stem: read_annotations(path, flow)}
        for name, of_video in rows.items():
            ends = [video for known, video in names.items() if name == known or name.endswith(f"_{known}")]
            if not ends:
                raise InputError(f"{path} is about the video {name!r}, which is none of those given")
            shown = [(one.step, one.start, one.end) for one in of_video if one.start is not None]
            found.setdefault(ends[0], []).extend(shown)
    return found


def _by_video(path: Path) -> list[str]:
    """Return the videos that a table has a column for; none where it has no such column."""
    if path.suffix.lower() != ".csv":
        return []
    columns, rows = _table(path)
    at = columns.index("video") if "video" in columns else None
    return [] if at is None else list(dict.fromkeys(row[at].strip() for row in rows[1:] if len(row) > at))


def to_constraints(annotations: Iterable[Annotation]) -> tuple[Constraint, ...]:
    """Return the annotations as things known, for ``ground(constraints=…)``: the steps in them are just there.

    A step that is annotated fills its spans and is shown nowhere outside of them; what is annotated as not shown is
    not shown. Steps without annotations stay free.
    """
    constraints = []
    spans: dict[int, list[tuple[float, float]]] = {}
    for one in annotations:
        if one.start is None or one.end is None:
            constraints.append(Constraint("forbid", one.step, -math.inf, math.inf))
        else:
            spans.setdefault(one.step, []).append((one.start, one.end))
    for step, of_step in spans.items():
        starts, ends = zip(*of_step, strict=True)
        constraints += [Constraint("show", step, start, end) for start, end in of_step]
        constraints.append(Constraint("within", step, min(starts), max(ends)))
    return tuple(constraints)


def _steps_by_name(flow: FlowGraph) -> dict[str, int]:
    """Return every name that means one step only: the exports' labels, then ids, then texts."""
    plain = titles(flow)
    counts = Counter(plain)
    unique = {title: step for step, title in enumerate(plain) if counts[title] == 1}
    ids = {one_line(step_id): step for step, step_id in enumerate(flow.ids)}
    return unique | ids | {label: step for step, label in enumerate(labels(flow))}


def _step(name: str, steps: dict[str, int], flow: FlowGraph, place: str) -> int:
    if name in flow.ids:
        return flow.index(name)
    if one_line(name) not in steps:
        raise FormatError(f"{place}: {unknown_step(one_line(name), steps)}")
    return steps[one_line(name)]


def _annotation(place: str, step: int, start: float | None, end: float | None) -> Annotation:
    if start is not None and end is not None and not start < end:
        raise FormatError(f"{place}: the end ({end:g} s) must be later than the start ({start:g} s)")
    return Annotation(step, start, end)


def _table(path: str | os.PathLike[str]) -> tuple[list[str], list[list[str]]]:
    """Return what the head of a table says, and all its rows."""
    text = read_text(path)
    sign = max(",;\t", key=text.split("\n", 1)[0].count)
    rows = [row for _, row in table_rows(io.StringIO(text, newline=""), str(path), sign) if any(map(str.strip, row))]
    if not rows:
        raise FormatError(f"{path} is empty")
    return [cell.strip().lower() for cell in rows[0]], rows


def _from_table(
    path: str | os.PathLike[str], steps: dict[str, int], flow: FlowGraph, video: str | None = None
) -> Iterator[Annotation]:
    columns, rows = _table(path)
    if "start" not in columns and _is_numbers(rows[0]):
        for number, row in enumerate(rows, start=1):
            place = f"{path}, row {number}"
            if not _is_numbers(row):
                raise FormatError(f"{place}: a number of a step, start and end are needed, not {quoted(row)}")
            step = count_of(row[0], f"{place}: the number of a step")
            if not 1 <= step <= len(flow):
                raise FormatError(f"{place}: there is no step {step}; the procedure has the steps 1 to {len(flow)}")
            yield _annotation(place, step - 1, *(read_number(cell, f"{place}: a time") for cell in row[1:]))
        return
    named = next((name for name in _NAMES if name in columns), None)
    if named is None or "start" not in columns or "end" not in columns:
        raise FormatError(f"{path}: the head must name the columns id, start and end; it has {quoted(rows[0])}")
    at_name, at_start, at_end = (columns.index(name) for name in (named, "start", "end"))
    for number, row in enumerate(rows[1:], start=2):
        place = f"{path}, row {number}"
        if len(row) <= max(at_name, at_start, at_end):
            raise FormatError(f"{place} has {len(row)} cells, fewer than the head")
        if video is not None and row[columns.index("video")].strip() != video:
            continue
        step = _step(text_of_cell(row[at_name]), steps, flow, place)
        start, end = row[at_start].strip(), row[at_end].strip()
        if bool(start) != bool(end):
            raise FormatError(f"{place}: give both start and end, or neither (a step that is not shown)")
        try:
            times = (parse_time(start), parse_time(end)) if start else (None, None)
        except InputError as error:
            raise FormatError(f"{place}: {error}") from None
        yield _annotation(place, step, *times)


def _is_numbers(row: list[str]) -> bool:
    """Say whether a row is the number of a step, a start and an end."""
    with suppress(FormatError):
        is_triple = len(row) == 3 and row[0].strip().isdecimal()
        return is_triple and all(math.isfinite(read_number(cell, "")) for cell in row)
    return False
