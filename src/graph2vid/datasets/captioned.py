"""A plain folder of captioned videos.

``captions/VIDEO.vtt`` or ``.srt``; ``annotations/TASK_VIDEO.csv`` or, in a folder with one procedure, ``VIDEO.csv``
(step, start, end), or one ``annotations.json``; ``procedures/TASK.flow`` (or another flow graph, or ``TASK.txt`` with
one step per line); ``durations.csv`` (video, seconds) where known. The files may lie side by side without sub-folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graph2vid._values import count_of
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import Dataset, HowTo, Recording, Task
from graph2vid.datasets.reader_tools import Narration, NarrationOptions, Trouble, entry
from graph2vid.errors import FormatError
from graph2vid.flow import FlowGraph

ANNOTATIONS = "annotations.json"
DURATIONS = "durations.csv"
GRAPHS = (".flow", ".json", ".dot", ".gv")
LIST = ".txt"
_LIST_MARK = re.compile(r"(?:[-*•]|\d{1,9}[.)])\s+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class _Video:
    """An annotated video as listed: its rows are (where they stand, step, start, end), still to be checked."""

    id: str
    name: str
    task: str
    where: str
    rows: list[tuple[str, Any, Any, Any]]
    duration: float | None = None


@dataclass(frozen=True)
class _Places:
    """Where the parts of a folder lie, and what is there."""

    data: Path
    captions: Path
    procedures: Path
    caption_of: Mapping[str, Path]
    procedure_of: Mapping[str, Path]

    def only_task(self, where: str) -> str:
        """Return the task of a video that names none: that of the only procedure."""
        if len(self.procedure_of) == 1:
            return next(iter(self.procedure_of))
        there = f"there are {len(self.procedure_of)} procedures"
        raise FormatError(f"{where} does not say which task it is of, and {there}")


@tools.reader("captioned", NarrationOptions)
def load(data: Path, options: NarrationOptions, trouble: Trouble) -> Dataset:
    """Read a folder of captioned videos.

    Parameters
    ----------
    data : path
        The folder.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset, embedder, narration, label_rule, label_overlapping
        See :class:`graph2vid.datasets.reader_tools.NarrationOptions`.

    Returns
    -------
    Dataset
        The steps of a task are those of its procedure; a flow graph is ``flows["manual"]``. A video whose duration is
        not given ends with its last caption or annotation.
    """
    places = _find_places(tools.folder(Path(data), "captions/, annotations/ and procedures/"))
    tasks: dict[str, Task] = {}
    source = Narration(places.caption_of, tasks, options.embedder, options.narration)
    durations = read_durations(places.data / DURATIONS)
    videos = _videos(places, trouble)
    for name in dict.fromkeys(video.task for video in videos):
        with trouble.passing():
            tasks[name] = _task(name, places)
    recordings = trouble.each(
        ((video, tasks[video.task], places, durations, options) for video in videos if video.task in tasks), _recording
    )
    where = {video.id: video.where for video in videos}
    spare = [name for name in places.caption_of if name not in {video.name for video in videos}]
    left_out = f"{places.captions}: videos without annotations are left out: {len(spare)}"
    used = {recording.task for recording in recordings}
    return trouble.dataset(
        recordings,
        places.data,
        lambda recording: where[recording.id],
        [f"{left_out}, {name} first" for name in spare[:1]],
        tasks={name: task for name, task in tasks.items() if name in used},
        splits=(),
        evidence=source,
    )


def _find_places(data: Path) -> _Places:
    captions, procedures = (part if (part := data / name).is_dir() else data for name in ("captions", "procedures"))
    caption_of = tools.caption_files(captions)
    if not caption_of:
        raise FormatError(f"{captions} has no captions: there should be VIDEO.vtt or VIDEO.srt")
    procedure_of: dict[str, Path] = {}
    for path in sorted(procedures.iterdir()):
        if path.suffix.lower() not in (*GRAPHS, LIST) or path.name == ANNOTATIONS or path.name.startswith("."):
            continue
        if path.stem in procedure_of:
            raise FormatError(f"task {path.stem} has two procedures: {procedure_of[path.stem]} and {path.name}")
        procedure_of[path.stem] = path
    if not procedure_of:
        wanted = "TASK.flow, .json or .dot, or TASK.txt (a step per line)"
        raise FormatError(f"{procedures} has no procedure: there should be {wanted}")
    return _Places(data, captions, procedures, caption_of, procedure_of)


def read_durations(path: Path) -> dict[str, float]:
    """Read the length of each video in seconds; a first row of headings is allowed."""
    if not path.exists():
        return {}
    rows = tools.read_rows(path, 2)
    if rows and rows[0][1][0].lower() == "video":
        rows = rows[1:]
    return {row[0]: tools.as_number(row[1], f"{path}, line {number}", "the duration") for number, row in rows}


def _videos(places: _Places, trouble: Trouble) -> list[_Video]:
    """List the annotated videos: those of ``annotations.json``, or else one table each."""
    document, directory = places.data / ANNOTATIONS, places.data / "annotations"
    if document.exists():
        if directory.is_dir():
            raise FormatError(f"{document} and {directory} both hold annotations; keep one of them")
        records = tools.read_document(document, dict, "map each video to its annotations")
        return trouble.each(((name, record, document, places) for name, record in records.items()), _from_record)
    directory = directory if directory.is_dir() else places.data
    tables = {name: path for name, path in tools.stems(directory, ".csv").items() if path.name != DURATIONS}
    if not tables:
        raise FormatError(f"{directory} has no annotations: there should be TASK_VIDEO.csv, VIDEO.csv or {ANNOTATIONS}")
    return trouble.each(((name, path, places) for name, path in tables.items()), _from_table)


def _from_record(name: str, record: Any, path: Path, places: _Places) -> _Video:
    where = f"{path}, video {name}"
    listed = entry(record, "annotations", list, where)
    task = str(entry(record, "task", (str, int), where)) if "task" in record else places.only_task(where)
    rows = []
    for number, row in enumerate(listed):
        here = f"{where}, annotation {number}"
        rows.append((here, entry(row, "step", (str, int), here), row.get("start"), row.get("end")))
    duration = tools.as_number(record["duration"], where, "the duration") if "duration" in record else None
    return _Video(name, name, task, where, rows, duration)


def _from_table(name: str, path: Path, places: _Places) -> _Video:
    task, video = _task_and_video(name, path, places)
    table = tools.read_rows(path, 3)
    if table and [cell.lower() for cell in table[0][1][:3]] == ["step", "start", "end"]:
        table = table[1:]
    rows = [(f"{path}, line {number}", row[0], row[1], row[2]) for number, row in table]
    return _Video(name, video, task, str(path), rows)


def _task_and_video(name: str, path: Path, places: _Places) -> tuple[str, str]:
    """Read the name of a table: TASK_VIDEO, both of which may hold "_", or VIDEO."""
    ways = [(name[:at], name[at + 1 :]) for at, letter in enumerate(name) if letter == "_"]
    tasks = [way for way in ways if way[0] in places.procedure_of]
    if name in places.caption_of:
        return (tasks[-1][0] if tasks else places.only_task(str(path))), name
    for way in reversed(tasks) if tasks else ways:
        if way[1] in places.caption_of:
            return way
    tools.caption_file(places.caption_of, tasks[-1][1] if tasks else name)
    raise AssertionError("a video without captions is refused")


def _task(name: str, places: _Places) -> Task:
    path = places.procedure_of.get(name)
    if path is None:
        raise FormatError(f"task {name} has no procedure: there is no {places.procedures / name}.flow, .json or .txt")
    flow = None
    if path.suffix.lower() == LIST:
        texts = tuple(_LIST_MARK.sub("", line, count=1) for _, line in tools.read_lines(path))
        if not texts:
            raise FormatError(f"{path} has no steps: there should be one per line")
    else:
        flow = FlowGraph.load(path)
        texts = tuple(step.text or step.id for step in flow.steps)
    title = (flow.title if flow is not None else "") or name.replace("_", " ")
    flows = {} if flow is None else {"manual": flow}
    task = Task.of_steps(name, title, texts, flows=flows)
    return replace(task, howto=HowTo(texts, task.correspondence, flows))


def _recording(
    video: _Video, task: Task, places: _Places, durations: Mapping[str, float], options: NarrationOptions
) -> Recording:
    captions = tools.caption_file(places.caption_of, video.name)
    duration = video.duration if video.duration is not None else durations.get(video.name)
    step_of, source, slack = step_names(task), places.procedure_of[task.id], max(1.0, options.clip_seconds)
    rows = [
        tools.annotation(
            named_step(named, len(task.steps), step_of, f"{source}", here), start, end, here, duration, slack
        )
        for here, named, start, end in video.rows
    ]
    if not rows:
        raise FormatError(f"{video.where} has no annotations")
    return tools.captioned_recording(video.id, task.id, rows, duration, captions, options, video=video.name)


def _plain(name: str) -> str:
    """Return a name as it is compared: letters and digits only, in one case."""
    return " ".join(_BETWEEN_WORDS.split(name.casefold())).strip()


def step_names(task: Task) -> dict[str, list[int]]:
    """Return the steps by what an annotation may call them: their words or ids."""
    names: dict[str, list[int]] = {}
    for step, text in enumerate(task.steps):
        names.setdefault(_plain(text), []).append(step)
    for flow in task.flows.values():
        for number, one in enumerate(flow.steps):
            if number not in names.setdefault(_plain(one.id), []):
                names[_plain(one.id)].append(number)
    return names


def named_step(named: Any, n_steps: int, step_of: Mapping[str, list[int]], source: str, where: str) -> int:
    """Return the step of a procedure that an annotation names, by its number from 1 or in words."""
    if str(named).isdecimal():
        number = count_of(str(named), f"{where}: the number of a step")
        steps = [number - 1] if 1 <= number <= n_steps else []
    else:
        steps = step_of.get(_plain(str(named)), [])
    if not steps:
        raise FormatError(f"{where}: there is no step {named!r} in {source}, which has {n_steps} (from 1)")
    if len(steps) > 1:
        raise FormatError(f"{where}: {len(steps)} steps of {source} are called {named!r}; give the number (from 1)")
    return steps[0]
