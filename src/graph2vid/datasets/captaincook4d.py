"""CaptainCook4D: recipes with expert task graphs, recordings with step times, skipped steps and errors.

``task_graphs/*.json`` (steps and edges, with START and END), ``annotation_json/complete_step_annotations.json`` and,
where there are such, ``annotation_json/error_annotations.json``, ``metadata/video_information.csv`` and
``data_splits/*.json``. Videos are not read: clip embeddings are simulated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from graph2vid._files import read_json
from graph2vid.datasets.caption_folder import clips_to_cover
from graph2vid.datasets.dataset import Dataset, Recording, Split, Task
from graph2vid.datasets.reader_tools import (
    LabelOptions,
    Trouble,
    annotation,
    as_number,
    data_folder,
    entry,
    folder,
    natural,
    read_rows,
    reader,
    stems,
)
from graph2vid.datasets.simulate import SimulationOptions
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import FlowGraph

ANNOTATIONS = Path("annotation_json", "complete_step_annotations.json")
ERRORS = Path("annotation_json", "error_annotations.json")
DURATIONS = Path("metadata", "video_information.csv")
ENDS = ("START", "END")
SAME_WORDING = 0.9
_NO_LETTER = re.compile(r"[\W_]")
"""How alike (0 to 1) a step and a node of the graph must be worded to be taken as one."""


@dataclass(frozen=True)
class _Activity:
    """One recipe as it occurs in the recordings: its title, and its steps by their number."""

    title: str
    steps: dict[int, str]


@dataclass(frozen=True)
class CaptainCook4DOptions(SimulationOptions, LabelOptions):
    """How CaptainCook4D is read."""

    clip_seconds: float = 3.2


@reader("captaincook4d", CaptainCook4DOptions)
def load(data: Path, options: CaptainCook4DOptions, trouble: Trouble) -> Dataset:
    """Read CaptainCook4D; the evidence is simulated from the step times.

    Parameters
    ----------
    data : path
        The folder with ``task_graphs/``, or one that has it in ``captaincook4d/``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, label_rule, label_overlapping
        See :class:`graph2vid.datasets.reader_tools.LabelOptions`.
    noise, persistence, dimensions, seed
        Of the clip embeddings, see :class:`graph2vid.datasets.simulate.Simulation`.

    Returns
    -------
    Dataset
        The procedure of a task is the steps of its graph, which is ``flows["expert"]``; where a graph has a step
        twice, the dataset step corresponds to both. ``notes`` of a recording: ``skipped`` (dataset steps that
        were left out), ``errors`` (tags by dataset step), ``order_error``, ``person`` and ``environment``.
    """
    place = data_folder(data, "captaincook4d", "task_graphs", "the expert task graphs")
    path = place / ANNOTATIONS
    records = read_json(path)
    if not isinstance(records, dict):
        raise FormatError(f"{path} should map each recording to its steps")
    activities, usable = _activities(records, path, trouble)
    graphs = {_key(stem): file for stem, file in stems(folder(place / "task_graphs", "RECIPE.json"), ".json").items()}
    tasks: dict[str, Task] = {}
    for name, activity in activities.items():
        with trouble.passing():
            tasks[name] = _task(name, activity, graphs, place, trouble)
    durations = _read_durations(place / DURATIONS)
    errors = _read_errors(place / ERRORS)
    recordings = []
    for name in usable:
        task = str(records[name]["activity_id"])
        if task not in tasks:
            continue  # it was passed over
        with trouble.passing():
            numbers = list(activities[task].steps)
            tags = errors.get(name, {})
            recordings.append(_recording(name, records[name], numbers, tags, durations.get(name), path, options))
    trouble.refuse_nothing_left(recordings, path)
    trouble.remark_overlaps(recordings, lambda one: f"{path}, recording {one.id}", options)
    return trouble.dataset(
        "captaincook4d",
        options,
        tasks=tasks,
        recordings=tuple(recordings),
        splits=_read_splits(place / "data_splits", {recording.id for recording in recordings}, trouble),
        evidence=options.simulation(tasks),
        simulated=True,
        options={"clip_seconds": options.clip_seconds, **options.simulated},
    )


def _key(title: str) -> str:
    """Return a title as the files of task graphs spell it."""
    return _NO_LETTER.sub("", title.lower())


def _activities(records: dict[str, Any], path: Path, trouble: Trouble) -> tuple[dict[str, _Activity], list[str]]:
    """Return the recipes that recordings show, by number, and the recordings that can be read."""
    found: dict[str, _Activity] = {}
    usable = []
    for name, record in records.items():
        with trouble.passing():
            where = f"{path}, recording {name}"
            activity = str(entry(record, "activity_id", (int, str), where))
            title = entry(record, "activity_name", str, where)
            steps = {
                entry(row, "step_id", int, where): entry(row, "description", str, where)
                for row in entry(record, "steps", list, where)
            }
            if not steps:
                raise FormatError(f"{where} has no steps")
            of = found.setdefault(activity, _Activity(title, {}))
            of.steps.update({number: text for number, text in steps.items() if number not in of.steps})
            usable.append(name)
    activities = {
        name: _Activity(of.title, dict(sorted(of.steps.items())))
        for name, of in sorted(found.items(), key=lambda item: natural(item[0]))
    }
    return activities, usable


def _task(name: str, activity: _Activity, graphs: Mapping[str, Path], place: Path, trouble: Trouble) -> Task:
    path = graphs.get(_key(activity.title))
    if path is None:
        wanted = place / "task_graphs" / f"{_key(activity.title)}.json"
        raise FormatError(f"task {name} ({activity.title}) has no procedure: there is no {wanted}")
    flow = _read_graph(path, activity.title)
    nodes: dict[str, list[int]] = {}
    for node, text in enumerate(flow.texts):
        nodes.setdefault(_key(text), []).append(node)
    rows = {number: nodes.get(_key(text), []) for number, text in activity.steps.items()}
    left = [key for key in nodes if not any(nodes[key] == row for row in rows.values())]
    for number, text in activity.steps.items():
        if rows[number]:
            continue
        alike = max(left, key=lambda key: SequenceMatcher(None, _key(text), key).ratio(), default="")
        if SequenceMatcher(None, _key(text), alike).ratio() < SAME_WORDING:
            raise FormatError(f"{path} has no step {text!r}, which recordings of task {name} show")
        rows[number] = nodes[alike]
        left.remove(alike)
        trouble.remarks.append(f"{path}: step {text!r} is taken as {flow.texts[rows[number][0]]!r}")
    steps = tuple(activity.steps.values())
    correspondence = tuple(tuple(row) for row in rows.values())
    return Task(name, activity.title, steps, flow.texts, correspondence, {"expert": flow})


def _read_graph(path: Path, title: str) -> FlowGraph:
    """Read a task graph; START and END, which only hold it together, are left out."""
    document = read_json(path)
    texts = entry(document, "steps", dict, str(path))
    steps = [(str(node), str(text)) for node, text in texts.items() if text not in ENDS]
    kept = {node for node, _ in steps}
    edges = []
    for edge in entry(document, "edges", list, str(path)):
        if not isinstance(edge, list) or len(edge) != 2 or not {str(edge[0]), str(edge[1])} <= set(texts):
            raise FormatError(f"{path}: edge {edge!r} should be a pair of steps")
        if {str(edge[0]), str(edge[1])} <= kept:
            edges.append((str(edge[0]), str(edge[1])))
    try:
        return FlowGraph.from_edges(steps, edges, title)
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from error


def _read_durations(path: Path) -> dict[str, float]:
    """Read the length of each video in seconds; the columns are named in the first row."""
    if not path.exists():
        return {}
    rows = read_rows(path, 2)
    header = rows[0][1] if rows else []
    if "recording_id" not in header or "duration(sec)" not in header:
        raise FormatError(f"{path}, line 1: there should be columns recording_id and duration(sec)")
    name, length = header.index("recording_id"), header.index("duration(sec)")
    durations = {}
    for number, row in rows[1:]:
        if len(row) < len(header):
            raise FormatError(f"{path}, line {number}: {len(row)} fields where there should be {len(header)}")
        durations[row[name]] = as_number(row[length], f"{path}, line {number}", "the duration")
    return durations


def _read_errors(path: Path) -> dict[str, dict[int, tuple[str, ...]]]:
    """Read the tags of what went wrong, by recording and step number."""
    if not path.exists():
        return {}
    document = read_json(path)
    if not isinstance(document, list):
        raise FormatError(f"{path} should be a list of recordings")
    errors: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, record in enumerate(document):
        where = f"{path}, entry {number}"
        of = errors.setdefault(entry(record, "recording_id", str, where), {})
        for row in entry(record, "step_annotations", list, where):
            step = entry(row, "step_id", int, where)
            made = entry(row, "errors", list, where) if "errors" in row else []
            tags = tuple(entry(error, "tag", str, where) for error in made)
            if tags:
                of[step] = tuple(dict.fromkeys((*of.get(step, ()), *tags)))
    return errors


def _recording(
    name: str,
    record: dict[str, Any],
    numbers: list[int],
    tags: Mapping[int, tuple[str, ...]],
    duration: float | None,
    path: Path,
    options: CaptainCook4DOptions,
) -> Recording:
    where = f"{path}, recording {name}"
    step_of = {number: step for step, number in enumerate(numbers)}
    annotations, skipped = [], []
    for row in record["steps"]:
        here = f"{where}, step {row['step_id']}"
        start = as_number(row.get("start_time"), here, "start_time")
        end = as_number(row.get("end_time"), here, "end_time")
        step = step_of[row["step_id"]]
        if start < 0:
            skipped.append(step)
        else:
            annotations.append(annotation(step, start, end, here, duration, max(1.0, options.clip_seconds)))
    if not annotations:
        raise FormatError(f"{where} shows no step at all")
    length = duration if duration is not None else max(row.end for row in annotations)
    errors = {step_of[number]: tags[number] for number in numbers if number in tags}
    notes = {
        "skipped": tuple(sorted(set(skipped) - {row.step for row in annotations})),
        "errors": errors,
        "order_error": any("Order Error" in of for of in errors.values()),
        "person": record.get("person_id"),
        "environment": record.get("environment"),
    }
    n_clips = clips_to_cover(length, options.clip_seconds)
    return Recording(name, str(record["activity_id"]), options.clip_seconds, 0.0, n_clips, tuple(annotations), notes)


def _read_splits(directory: Path, known: set[str], trouble: Trouble) -> tuple[Split, ...]:
    """Read the splits that have recordings here on both sides; those for validation are on neither."""
    splits = []
    for stem, path in (stems(directory, ".json") if directory.is_dir() else {}).items():
        with trouble.passing():
            document = read_json(path)
            sides = [
                tuple(name for name in entry(document, side, list, str(path)) if str(name) in known)
                for side in ("train", "test")
            ]
            if all(sides):
                splits.append(Split(stem.replace("_data_split", ""), *sides))
    return tuple(splits)
