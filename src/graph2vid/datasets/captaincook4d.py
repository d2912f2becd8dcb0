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
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import Dataset, Recording, Split, Task
from graph2vid.datasets.reader_tools import LabelOptions, Trouble, entry
from graph2vid.datasets.simulate import SIMULATED, SimulationOptions
from graph2vid.errors import FormatError
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

    told = ("clip_seconds", *SIMULATED)

    clip_seconds: float = 3.2


@tools.reader("captaincook4d", CaptainCook4DOptions)
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
    place = tools.data_folder(data, "captaincook4d", "task_graphs", "the expert task graphs")
    path = place / ANNOTATIONS
    records = tools.read_document(path, dict, "map each recording to its steps")
    activities, usable = _activities(records, path, trouble)
    files = tools.stems(tools.folder(place / "task_graphs", "RECIPE.json"), ".json")
    graphs = {_key(stem): file for stem, file in files.items()}
    read = trouble.each(((name, activity, graphs, place, trouble) for name, activity in activities.items()), _task)
    tasks = {task.id: task for task in read}
    durations = _read_durations(place / DURATIONS)
    errors = _read_errors(place / ERRORS)

    def recording(name: str) -> Recording:
        numbers = list(activities[str(records[name]["activity_id"])].steps)
        return _recording(name, records[name], numbers, errors.get(name, {}), durations.get(name), path, options)

    recordings = trouble.each(((name,) for name in usable if str(records[name]["activity_id"]) in tasks), recording)
    return trouble.dataset(
        recordings,
        path,
        lambda one: f"{path}, recording {one.id}",
        tasks=tasks,
        splits=_read_splits(place / "data_splits", {recording.id for recording in recordings}, trouble),
        evidence=options.simulation(tasks),
        simulated=True,
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
            rows = entry(record, "steps", list, where)
            steps = {entry(row, "step_id", int, where): entry(row, "description", str, where) for row in rows}
            if not steps:
                raise FormatError(f"{where} has no steps")
            of = found.setdefault(activity, _Activity(title, {}))
            of.steps.update({number: text for number, text in steps.items() if number not in of.steps})
            usable.append(name)
    ordered = sorted(found.items(), key=lambda item: tools.natural(item[0]))
    return {name: _Activity(of.title, dict(sorted(of.steps.items()))) for name, of in ordered}, usable


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
    return tools.flow_graph(steps, edges, title, str(path))


def _read_durations(path: Path) -> dict[str, float]:
    """Read the length of each video in seconds; the columns are named in the first row."""
    if not path.exists():
        return {}
    rows = tools.read_rows(path, 2)
    header = rows[0][1] if rows else []
    if "recording_id" not in header or "duration(sec)" not in header:
        raise FormatError(f"{path}, line 1: there should be columns recording_id and duration(sec)")
    name, length = header.index("recording_id"), header.index("duration(sec)")
    durations = {}
    for number, row in rows[1:]:
        if len(row) < len(header):
            raise FormatError(f"{path}, line {number}: {len(row)} fields where there should be {len(header)}")
        durations[row[name]] = tools.as_number(row[length], f"{path}, line {number}", "the duration")
    return durations


def _read_errors(path: Path) -> dict[str, dict[int, tuple[str, ...]]]:
    """Read the tags of what went wrong, by recording and step number."""
    if not path.exists():
        return {}
    errors: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, record in enumerate(tools.read_document(path, list, "be a list of recordings")):
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
        start, end, step = row.get("start_time"), row.get("end_time"), step_of[row["step_id"]]
        if tools.as_number(start, here, "start_time") < 0:
            tools.as_number(end, here, "end_time")
            skipped.append(step)
        else:
            annotations.append(tools.annotation(step, start, end, here, duration, max(1.0, options.clip_seconds)))
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
    n_clips = tools.clips_to_cover(length, options.clip_seconds)
    return Recording(name, str(record["activity_id"]), options.clip_seconds, 0.0, n_clips, tuple(annotations), notes)


def _read_splits(directory: Path, known: set[str], trouble: Trouble) -> tuple[Split, ...]:
    """Read the splits that have recordings here on both sides; those for validation are on neither."""
    splits: list[Split] = []
    for stem, path in (tools.stems(directory, ".json") if directory.is_dir() else {}).items():
        with trouble.passing():
            document = read_json(path)
            sides = (entry(document, side, list, str(path)) for side in ("train", "test"))
            kept = [[name for name in side if str(name) in known] for side in sides]
            splits += tools.split(stem.replace("_data_split", ""), *kept)
    return tuple(splits)
