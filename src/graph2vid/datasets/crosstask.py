"""CrossTask: how-to videos of many tasks, with step times, and captions or features as evidence.

Task lists (``tasks_primary.txt``, ``tasks_related.txt``), ``annotations/TASK_VIDEO.csv`` (step from 1, start, end),
``videos_val.csv``; ``captions/VIDEO.vtt`` or ``features/VIDEO.npy`` with ``step_features/TASK.npy``;
``procedures.json`` with instructions, the instructions of each step, and durations; flow graphs in the published form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from graph2vid._files import read_json
from graph2vid.datasets.captioned import Narration, caption_file, caption_files, clips_to_cover
from graph2vid.datasets.model import Annotation, Dataset, Evidence, Recording, Split, Task
from graph2vid.datasets.published_flows import PublishedFlow, read_published_flows
from graph2vid.datasets.reading import (
    DATASETS,
    Trouble,
    annotation,
    as_number,
    choice,
    entry,
    folder,
    read_lines,
    read_rows,
    remark_overlaps,
    stems,
)
from graph2vid.errors import FormatError
from graph2vid.evidence.arrays import cosine_similarity, read_array
from graph2vid.evidence.captions import read_captions
from graph2vid.evidence.embed import text_embedder
from graph2vid.flow import FlowGraph

DESCRIPTIONS = ("steps", "instructions")
EVIDENCE = ("captions", "features")
TASK_LISTS = ("tasks_primary.txt", "tasks_related.txt")
SUB_FOLDERS = ("crosstask_release", "crosstask_procedures", "crosstask_narrated")
FLOW_FILE = "flow_graphs.json"
MILNCE_SECONDS = 3.2


@dataclass(frozen=True)
class _ListedTask:
    title: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class _Procedure:
    """The instructions of a task, which of them each step corresponds to, and graphs over them."""

    instructions: tuple[str, ...]
    correspondence: tuple[tuple[int, ...], ...]
    flows: Mapping[str, FlowGraph] = field(default_factory=dict)


@dataclass(frozen=True)
class _Features:
    """Evidence from embeddings of clips and steps, compared by cosine."""

    files: Mapping[str, Path]
    step_files: Mapping[str, Path]
    tasks: Mapping[str, Task]

    def file(self, task: str, video: str) -> Path:
        """Return the feature file of a video."""
        for name in (f"{task}_{video}", video):
            if name in self.files:
                return self.files[name]
        raise FormatError(f"video {video} of task {task} is annotated but has no features: there is no {video}.npy")

    def read(self, task: str, video: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the embeddings of the steps [K, D] and of the clips [N, D]."""
        path, step_path = self.file(task, video), self.step_files.get(task)
        if step_path is None:
            raise FormatError(f"task {task} has no embeddings of its steps: there is no step_features/{task}.npy")
        clips, steps = read_array(path), read_array(step_path)
        count = len(self.tasks[task].procedure)
        if steps.ndim != 2 or len(steps) != count:
            raise FormatError(f"{step_path} has shape {steps.shape}; task {task} has {count} steps [steps, dimensions]")
        size = steps.shape[1]
        if clips.ndim != 2 or size not in clips.shape:
            raise FormatError(f"{path} has shape {clips.shape}, but {step_path} has {size} dimensions")
        if clips.shape == (size, size):
            raise FormatError(f"{path} has shape {clips.shape}: it cannot be seen which axis is time")
        return steps, clips if clips.shape[1] == size else clips.T

    def __call__(self, recording: Recording) -> Evidence:
        steps, clips = self.read(recording.task, recording.notes["video"])
        return Evidence(cosine_similarity(steps, clips), None, "cosine")


@DATASETS.register("crosstask")
def load(
    data: str | Path,
    *,
    skip_bad: bool = False,
    descriptions: str = "steps",
    evidence: str | None = None,
    clip_seconds: float | None = None,
    offset: float = 0.0,
    embedder: str = "wordllama",
    flows: str | Path | None = None,
    label_rule: str = "cover",
    label_overlapping: str = "start",
) -> Dataset:
    """Read CrossTask.

    Parameters
    ----------
    data : path
        A folder with all of it, or with the sub-folders ``crosstask_release``, ``crosstask_procedures`` and
        ``crosstask_narrated``, or one of these with the others beside it.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    descriptions : {"steps", "instructions"}
        Ground the dataset's own step names, or the instructions of the procedure.
    evidence : {"captions", "features"}, optional
        Where similarities come from; by default the features if there are some, else the captions.
    clip_seconds : float, optional
        By default 1 for captions and 3.2 (clips of MIL-NCE) for features.
    offset : float
        Time of the first clip in seconds.
    embedder : str
        The text embedder for captions.
    flows : path, optional
        Flow graphs in the published form, whose instructions are then the procedure; by default
        ``flow_graphs.json`` where there is one. Used when ``descriptions="instructions"``.
    label_rule, label_overlapping : str
        How annotations are laid on clips, see :class:`graph2vid.datasets.Dataset`.
    """
    choice(descriptions, "descriptions", DESCRIPTIONS)
    places = _places(folder(Path(data), "CrossTask: tasks_primary.txt, annotations/, captions/ or features/"))
    trouble = Trouble(skip_bad)
    listed = _read_tasks(places)
    durations: dict[str, float] = {}
    procedures: dict[str, _Procedure] = {}
    procedures_path = _find(places, "procedures.json")
    if procedures_path is not None:
        _read_procedures(procedures_path, listed, procedures, durations, trouble)
    flow_path = Path(flows) if flows is not None else _find(places, FLOW_FILE)
    if flow_path is not None:
        _add_flows(flow_path, listed, procedures, trouble)

    feature_folder, caption_folder = _find(places, "features"), _find(places, "captions")
    kind = choice(evidence or ("features" if feature_folder else "captions"), "evidence", EVIDENCE)
    chosen = feature_folder if kind == "features" else caption_folder
    if chosen is None:
        raise FormatError(f"{data} has no folder {kind}/, nor has one of {', '.join(SUB_FOLDERS)}")
    seconds = clip_seconds if clip_seconds is not None else (MILNCE_SECONDS if kind == "features" else 1.0)

    annotated = _annotation_files(chosen.parent, places)
    tasks = _tasks(sorted({stem.partition("_")[0] for stem in annotated}), listed, procedures, descriptions, trouble)
    source: _Features | Narration
    if kind == "features":
        step_folder = folder(chosen.parent / "step_features", "TASK.npy, embeddings of steps [steps, dimensions]")
        source = _Features(stems(chosen, ".npy"), stems(step_folder, ".npy"), tasks)
    else:
        text_embedder(embedder)  # a missing package is named now, not in the middle of the work
        source = Narration(caption_files(chosen), tasks, embedder)
    recordings = []
    for stem, path in annotated.items():
        if stem.partition("_")[0] not in tasks:
            continue  # the task was passed over
        with trouble.passing():
            recordings.append(_recording(stem, path, chosen, source, durations, seconds, offset))
    trouble.refuse_nothing_left(recordings, Path(data))
    trouble.remarks += remark_overlaps(recordings, lambda recording: str(annotated[recording.id]), label_overlapping)
    used = {recording.task for recording in recordings}
    return Dataset(
        name="crosstask",
        tasks={task: tasks[task] for task in tasks if task in used},
        recordings=tuple(recordings),
        splits=_read_validation(_find(places, "videos_val.csv"), recordings),
        evidence=source,
        problems=tuple(trouble.problems),
        remarks=tuple(trouble.remarks),
        label_rule=label_rule,
        label_overlapping=label_overlapping,
        options={"descriptions": descriptions, "evidence": kind, "clip_seconds": seconds, "offset": offset}
        | ({"embedder": embedder} if kind == "captions" else {}),
    )


def _places(data: Path) -> list[Path]:
    """Return the folders in which parts of the dataset may lie, nearest first."""
    near = [data, *(data / name for name in SUB_FOLDERS)]
    if data.name in SUB_FOLDERS:
        near += [data.parent / name for name in SUB_FOLDERS]
    return [place for place in dict.fromkeys(near) if place.is_dir()]


def _find(places: list[Path], name: str) -> Path | None:
    return next((place / name for place in places if (place / name).exists()), None)


def _read_tasks(places: list[Path]) -> dict[str, _ListedTask]:
    """Read the task lists: blocks of five lines (id, title, address, number of steps, steps)."""
    paths = [path for name in TASK_LISTS if (path := _find(places, name)) is not None]
    if not paths:
        raise FormatError(f"{places[0]} has no task list ({' or '.join(TASK_LISTS)}), nor has {SUB_FOLDERS[0]}")
    listed: dict[str, _ListedTask] = {}
    for path in paths:
        lines = read_lines(path)
        for first in range(0, len(lines), 5):
            block = lines[first : first + 5]
            number = block[0][0]
            if len(block) < 5 or not block[0][1].isdecimal() or not block[3][1].isdecimal():
                raise FormatError(
                    f"{path}, line {number}: a task is five lines: its number, title, address, number of steps, steps"
                )
            steps = tuple(step.strip() for step in block[4][1].split(","))
            if len(steps) != int(block[3][1]):
                raise FormatError(f"{path}, line {block[4][0]}: {len(steps)} steps where {block[3][1]} are announced")
            listed[block[0][1]] = _ListedTask(block[1][1], tuple(step.replace("_", " ") for step in steps))
    return listed


def _read_procedures(
    path: Path,
    listed: Mapping[str, _ListedTask],
    procedures: dict[str, _Procedure],
    durations: dict[str, float],
    trouble: Trouble,
) -> None:
    document = read_json(path)
    if not isinstance(document, list):
        raise FormatError(f"{path} should be a list of tasks, not a {type(document).__name__}")
    for number, record in enumerate(document):
        with trouble.passing():
            task = str(entry(record, "task_id", (int, str), f"{path}, entry {number}"))
            where = f"{path}, task {task}"
            lengths = entry(record, "video_duration", dict, where) if "video_duration" in record else {}
            for video, seconds in lengths.items():
                durations[f"{task}_{video}"] = as_number(seconds, where, f"the duration of {video}")
            if not record.get("instructions") or task not in listed:
                continue  # a task without a procedure matters only where it is used
            instructions = tuple(str(text) for text in entry(record, "instructions", list, where))
            rows = entry(record, "crosstask_step_to_instruction", list, where)
            if len(rows) != len(listed[task].steps):
                raise FormatError(f"{where}: {len(rows)} rows of instructions for {len(listed[task].steps)} steps")
            for step, row in enumerate(rows):
                if not isinstance(row, list) or any(type(i) is not int or not 0 <= i < len(instructions) for i in row):
                    raise FormatError(
                        f"{where}: step {step} names instructions {row!r} of {len(instructions)} (counted from 0)"
                    )
            procedures[task] = _Procedure(instructions, tuple(tuple(row) for row in rows))


def _add_flows(
    path: Path, listed: Mapping[str, _ListedTask], procedures: dict[str, _Procedure], trouble: Trouble
) -> None:
    """Let published flow graphs take the place of procedures without one."""
    published: dict[str, PublishedFlow] = read_published_flows(path)
    for task, flow in published.items():
        if task not in listed:
            continue
        with trouble.passing():
            where = f"{path}, task {task}"
            rows = flow.correspondence(len(listed[task].steps), where)
            known = procedures.get(task)
            if not flow.step_of and known is not None and len(known.instructions) == len(flow.instructions):
                rows = known.correspondence
            procedures[task] = _Procedure(flow.instructions, rows, flow.flows)


def _tasks(
    names: list[str],
    listed: Mapping[str, _ListedTask],
    procedures: Mapping[str, _Procedure],
    descriptions: str,
    trouble: Trouble,
) -> dict[str, Task]:
    tasks = {}
    for name in names:
        with trouble.passing():
            if name not in listed:
                raise FormatError(f"task {name} has annotations but stands in no task list")
            of = listed[name]
            if descriptions == "steps":
                tasks[name] = Task(name, of.title, of.steps, of.steps, tuple((i,) for i in range(len(of.steps))))
                continue
            if name not in procedures:
                raise FormatError(f"task {name} ({of.title}) has no procedure: no instructions in procedures.json")
            procedure = procedures[name]
            tasks[name] = Task(
                name, of.title, of.steps, procedure.instructions, procedure.correspondence, procedure.flows
            )
    return tasks


def _annotation_files(place: Path, places: list[Path]) -> dict[str, Path]:
    """Return the annotation files beside the evidence, or else those of the release whose video has evidence."""
    if (place / "annotations").is_dir():
        directory, only = place / "annotations", None
    else:
        found = _find(places, "annotations")
        directory = folder(found or place / "annotations", "TASK_VIDEO.csv")
        only = {path.stem for path in place.glob("*/*") if path.parent.name in EVIDENCE}
    annotated = stems(directory, ".csv")
    if only is not None:
        annotated = {stem: path for stem, path in annotated.items() if {stem, stem.partition("_")[2]} & only}
    if not annotated:
        raise FormatError(f"{directory} has no TASK_VIDEO.csv")
    return annotated


def _recording(
    stem: str,
    path: Path,
    chosen: Path,
    source: _Features | Narration,
    durations: Mapping[str, float],
    clip_seconds: float,
    offset: float,
) -> Recording:
    task, _, video = stem.partition("_")
    if not video:
        raise FormatError(f"{path}: the name should be TASK_VIDEO.csv")
    n_steps = len(source.tasks[task].steps)
    duration = durations.get(stem)
    n_clips = 0
    if isinstance(source, _Features):
        _, clips = source.read(task, video)
        n_clips = len(clips)
        duration = offset + n_clips * clip_seconds  # what is seen
    rows = [
        _read_annotation(row, n_steps, f"{path}, line {number}", duration, clip_seconds)
        for number, row in read_rows(path, 3)
    ]
    if not rows:
        raise FormatError(f"{path} has no annotations")
    if not n_clips:
        cues = read_captions(caption_file(source.files, video, chosen))
        if duration is None:
            duration = max([*(cue.end for cue in cues), *(row.end for row in rows)], default=0.0)
        n_clips = clips_to_cover(duration - offset, clip_seconds)
    return Recording(stem, task, clip_seconds, offset, n_clips, tuple(rows), {"video": video})


def _read_annotation(row: list[str], n_steps: int, where: str, duration: float | None, slack: float) -> Annotation:
    if not row[0].isdecimal() or not 1 <= int(row[0]) <= n_steps:
        raise FormatError(f"{where}: there is no step {row[0]!r}; the task has {n_steps}, counted from 1")
    start, end = as_number(row[1], where, "the start"), as_number(row[2], where, "the end")
    return annotation(int(row[0]) - 1, start, end, where, duration, slack)


def _read_validation(path: Path | None, recordings: list[Recording]) -> tuple[Split, ...]:
    """Return the split into the validation list and the rest, if both have recordings here."""
    if path is None:
        return ()
    listed = {f"{row[0]}_{row[1]}" for _, row in read_rows(path, 2)}
    test = tuple(recording.id for recording in recordings if recording.id in listed)
    train = tuple(recording.id for recording in recordings if recording.id not in listed)
    return (Split("validation", train, test),) if train and test else ()
