"""CrossTask: how-to videos of many tasks, with step times, and captions or features as evidence.

Task lists (``tasks_primary.txt``, ``tasks_related.txt``), ``annotations/TASK_VIDEO.csv`` (step from 1, start, end),
``videos_val.csv``; ``captions/VIDEO.vtt``, or ``features/VIDEO.npy`` (or ``features.lmdb``) and
``step_features/TASK.npy``;
``procedures.json`` with instructions, the instructions of each step, and durations; flow graphs in the published form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from graph2vid._values import count_of
from graph2vid.datasets import crosstask_tasks
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.crosstask_tasks import (
    FLOW_FILE,
    SUB_FOLDERS,
    ListedTask,
    find,
    onto_steps,
    places_of,
    read_tasks,
)
from graph2vid.datasets.dataset import Annotation, Dataset, Embeddings, Evidence, HowTo, Recording, Split, Task
from graph2vid.datasets.lmdb_arrays import LmdbArrays
from graph2vid.datasets.reader_tools import Narration, NarrationOptions, Trouble, choice, folder, read_rows
from graph2vid.errors import FormatError
from graph2vid.evidence import check_clips, cosine_similarity, read_array

DESCRIPTIONS = ("steps", "instructions")
EVIDENCE = ("captions", "features")
MILNCE_SECONDS = 3.2


@dataclass(frozen=True)
class _Features:
    """Evidence from embeddings of clips and steps, compared by cosine or inner product."""

    place: Path
    files: Mapping[str, Path] | LmdbArrays
    step_files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    comparison: Literal["cosine", "dot"]
    axis: str

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the embeddings of the steps and of the clips."""
        return Embeddings(*self.read(recording.task, recording.notes["video"]), self.comparison)

    def read(self, task: str, video: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the embeddings of the steps [K, D] and of the clips [N, D]."""
        self._place(task, video)
        step_path = self.step_files.get(task)
        if step_path is None:
            wanted = self.place / "step_features" / f"{task}.npy"
            raise FormatError(f"task {task} has no embeddings of its steps: there is no {wanted}")
        steps = read_array(step_path)
        count = len(self.tasks[task].procedure)
        if steps.ndim != 2 or len(steps) != count:
            raise FormatError(f"{step_path} has shape {steps.shape}; task {task} has {count} steps [steps, dimensions]")
        size = steps.shape[1]
        clips, path = self._clips(task, video, size)
        if clips.ndim != 2 or size not in clips.shape:
            raise FormatError(f"{path} has shape {clips.shape}, but {step_path} has {size} dimensions")
        if self.axis == "auto" and clips.shape == (size, size):
            stated = "state it: axis=clips,dims or axis=dims,clips"
            raise FormatError(f"{path} has shape {clips.shape}: it cannot be seen which axis is time; {stated}")
        if clips.size == 0:
            raise FormatError(f"{path} has shape {clips.shape}: there are no clips")
        if self.axis != "auto" and clips.shape[self.axis == "first"] != size:
            stated = "clips,dims" if self.axis == "first" else "dims,clips"
            raise FormatError(f"{path} has shape {clips.shape}, read {stated}, but {step_path} has {size} dimensions")
        is_first = clips.shape[1] == size if self.axis == "auto" else self.axis == "first"
        return steps, clips if is_first else clips.T

    def _clips(self, task: str, video: str, size: int) -> tuple[NDArray[Any], Any]:
        """Return the array of a video as it is kept, and where that is."""
        path = self._place(task, video)
        if isinstance(self.files, LmdbArrays):
            return self.files.read((f"{task}_{video}", video), size)
        return read_array(path), path

    def _place(self, task: str, video: str) -> Path:
        """Return the file that has the features of a video."""
        if isinstance(self.files, LmdbArrays):
            return self.files.path
        path = self.files.get(f"{task}_{video}", self.files.get(video))
        if path is None:
            wanted = self.place / "features" / f"{video}.npy"
            raise FormatError(f"video {video} of task {task} is annotated but has no features: there is no {wanted}")
        return path

    def __call__(self, recording: Recording) -> Evidence:
        steps, clips = self.read(recording.task, recording.notes["video"])
        if self.comparison == "dot":
            return Evidence(steps @ clips.T, None, "scores")
        return Evidence(cosine_similarity(steps, clips), None, "cosine")


@dataclass(frozen=True)
class CrossTaskOptions(NarrationOptions):
    """How CrossTask is read: see :func:`load`."""

    told = (
        "descriptions",
        "evidence",
        *NarrationOptions.told,
    )  # the last two of captions alone; of features comparison

    clip_seconds: float | None = None  # type: ignore[assignment]
    descriptions: str = "steps"
    evidence: str | None = None
    flows: str | Path | Sequence[str | Path] | None = None
    comparison: str = "cosine"
    axis: str | Sequence[str] = "auto"


@tools.reader("crosstask", CrossTaskOptions)
def load(data: Path, options: CrossTaskOptions, trouble: Trouble) -> Dataset:
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
    narration : {"weighed", "plain"}
        How the transcript becomes evidence, see :class:`graph2vid.datasets.Narration`.
    comparison : {"cosine", "dot"}
        How features are compared: by cosine, or by inner product (scores, whose temperature is 1 by default).
    axis : "auto", or "clips" and "dims" in the order of the arrays of features
        By default told from the number of dimensions of the steps' embeddings.
    flows : path or sequence of paths, optional
        Files of flow graphs in the published form, whose instructions are then the how-to text. Graphs are called by
        the names of their files (``rule_parser.json``: graph:rule_parser), those of ``flow_graphs.json``, which is read
        by default where there is one, "manual". A task that has none gets the graph that was made by hand for
        graph2vid ("manual"), if it has one for as many instructions. With ``descriptions="steps"`` the steps take
        over what holds between their instructions.
    label_rule, label_overlapping : str
        How annotations are laid on clips, see :class:`graph2vid.datasets.Dataset`.
    """
    choice(options.descriptions, "descriptions", DESCRIPTIONS)
    places = places_of(folder(data, "CrossTask: tasks_primary.txt, annotations/, captions/ or features/"))
    listed = read_tasks(places)
    howtos, durations = _read_howtos(places, listed, options.flows, trouble)

    feature_folder = find(places, "features") or find(places, "features.lmdb")
    caption_folder = find(places, "captions")
    kind = choice(options.evidence or ("features" if feature_folder else "captions"), "evidence", EVIDENCE)
    chosen = feature_folder if kind == "features" else caption_folder
    if chosen is None:
        raise FormatError(f"{data} has no folder {kind}/, nor has one of {', '.join(SUB_FOLDERS)}")
    options = replace(options, evidence=kind)
    if options.clip_seconds is None:
        options = replace(options, clip_seconds=MILNCE_SECONDS if kind == "features" else 1.0)

    annotated = _annotation_files(chosen.parent, places)
    names = sorted({stem.partition("_")[0] for stem in annotated})
    tasks = _tasks(names, listed, howtos, options.descriptions, trouble)
    source: _Features | Narration
    if kind == "features":
        step_folder = folder(chosen.parent / "step_features", "TASK.npy, embeddings of steps [steps, dimensions]")
        files = LmdbArrays(chosen) if chosen.suffix == ".lmdb" else tools.stems(chosen, ".npy")
        comparison: Any = choice(options.comparison, "comparison", ("cosine", "dot"))
        axis = tools.first_axis(options.axis, "clips", "dims")
        source = _Features(chosen.parent, files, tools.stems(step_folder, ".npy"), tasks, comparison, axis)
    else:
        source = Narration(tools.caption_files(chosen), tasks, options.embedder, options.narration)
    here = [(stem, path) for stem, path in annotated.items() if stem.partition("_")[0] in tasks]  # or passed over
    recordings = trouble.each(here, lambda stem, path: _recording(stem, path, source, durations.get(stem), options))
    used = {recording.task for recording in recordings}
    told = options.told if kind == "captions" else (*options.told[:-2], "comparison")
    return trouble.dataset(
        recordings,
        data,
        lambda recording: str(annotated[recording.id]),
        tasks={task: tasks[task] for task in tasks if task in used},
        splits=_read_validation(find(places, "videos_val.csv"), recordings),
        evidence=source,
        options={name: getattr(options, name) for name in told},
    )


def _read_howtos(
    places: list[Path],
    listed: Mapping[str, ListedTask],
    flows: str | Path | Sequence[str | Path] | None,
    trouble: Trouble,
) -> tuple[dict[str, HowTo], dict[str, float]]:
    """Return the how-to text of each task that has one, with its graphs, and the lengths of videos in seconds."""
    path = find(places, "procedures.json")
    howtos, durations = ({}, {}) if path is None else crosstask_tasks.read_procedures(path, listed, trouble)
    found = find(places, FLOW_FILE)
    paths = [flows] if isinstance(flows, str | Path) else flows or ([] if found is None else [found])
    for number, flow_path in enumerate(map(Path, paths)):
        crosstask_tasks.add_published(flow_path, listed, howtos, trouble, beside=number > 0)
    crosstask_tasks.add_manual(howtos, trouble.remarks)
    return howtos, durations


def _tasks(
    names: list[str], listed: Mapping[str, ListedTask], howtos: Mapping[str, HowTo], descriptions: str, trouble: Trouble
) -> dict[str, Task]:
    tasks = {}
    for name in names:
        with trouble.passing():
            if name not in listed:
                raise FormatError(f"task {name} has annotations but stands in no task list")
            title, steps, howto = listed[name].title, listed[name].steps, howtos.get(name)
            if descriptions == "steps":
                flows = {} if howto is None else howto.flows
                rows = () if howto is None else howto.correspondence
                over_steps = {source: onto_steps(flow, rows, steps) for source, flow in flows.items()}
                tasks[name] = Task.of_steps(name, title, steps, flows=over_steps, howto=howto)
            elif howto is None:
                raise FormatError(f"task {name} ({title}) has no procedure: no instructions in procedures.json")
            else:
                tasks[name] = Task(name, title, steps, howto.instructions, howto.correspondence, howto.flows, howto)
    return tasks


@dataclass(frozen=True)
class Executions:
    """How people did a task.

    Attributes
    ----------
    task : Task
        Its procedure is the how-to text.
    orders : tuple of tuples of int
        For each annotated video the dataset steps that it shows, each once, by the start of their first annotation.
    """

    task: Task
    orders: tuple[tuple[int, ...], ...]


def read_executions(data: str | Path) -> tuple[Executions, ...]:
    """Read the annotated orders of every task that has a how-to text; neither captions nor features are needed.

    A task without an annotated video is there too, with no orders.

    Parameters
    ----------
    data : path
        As for :func:`load`; the annotations are those of the release where they are there.
    """
    places = places_of(folder(Path(data), "CrossTask: tasks_primary.txt, annotations/, procedures.json"))
    trouble = Trouble(skip_bad=False)
    listed = read_tasks(places)
    howtos, _ = _read_howtos(places, listed, None, trouble)
    if not howtos:
        raise FormatError(f"{data} has no procedures.json with instructions, nor has {SUB_FOLDERS[1]}")
    release = sorted(places, key=lambda place: place.name != SUB_FOLDERS[0])
    files = tools.stems(folder(find(release, "annotations") or places[0] / "annotations", "TASK_VIDEO.csv"), ".csv")
    orders: dict[str, list[tuple[int, ...]]] = {name: [] for name in howtos}
    for stem, path in files.items():
        name = stem.partition("_")[0]
        if name in orders:
            rows = _read_annotations(path, len(listed[name].steps), None, 0.0)
            orders[name].append(tuple(dict.fromkeys(row.step for row in sorted(rows, key=lambda row: row.start))))
    tasks = _tasks(list(howtos), listed, howtos, "instructions", trouble)
    return tuple(Executions(tasks[name], tuple(of_task)) for name, of_task in orders.items())


def _annotation_files(place: Path, places: list[Path]) -> dict[str, Path]:
    """Return the annotation files beside the evidence, or else those of the release whose video has evidence."""
    directory = place / "annotations"
    if directory.is_dir():
        annotated = tools.stems(directory, ".csv")
    else:
        directory = folder(find(places, "annotations") or directory, "TASK_VIDEO.csv")
        only = {path.stem for path in place.glob("*/*") if path.parent.name in EVIDENCE}
        only |= set(LmdbArrays(place / "features.lmdb").names()) if (place / "features.lmdb").exists() else set()
        files = tools.stems(directory, ".csv")
        annotated = {stem: path for stem, path in files.items() if {stem, stem.partition("_")[2]} & only}
    if not annotated:
        raise FormatError(f"{directory} has no TASK_VIDEO.csv")
    return annotated


def _recording(
    stem: str, path: Path, source: _Features | Narration, duration: float | None, options: CrossTaskOptions
) -> Recording:
    task, _, video = stem.partition("_")
    if not video:
        raise FormatError(f"{path}: the name should be TASK_VIDEO.csv")
    clip_seconds, offset, n_clips = options.clip_seconds, options.offset, 0
    assert clip_seconds is not None
    if isinstance(source, _Features):
        n_clips = len(source.read(task, video)[1])
    known = None if isinstance(source, _Features) else duration
    rows = _read_annotations(path, len(source.tasks[task].steps), known, clip_seconds)
    if not rows:
        raise FormatError(f"{path} has no annotations")
    if isinstance(source, _Features):
        last = max(row.end for row in rows)
        check_clips(f"video {video}", n_clips, clip_seconds, offset, duration=duration, last=last)
        return Recording(stem, task, clip_seconds, offset, n_clips, tuple(rows), {"video": video})
    captions = tools.caption_file(source.files, video)
    return tools.captioned_recording(stem, task, rows, duration, captions, options, video=video)


def _read_annotations(path: Path, n_steps: int, duration: float | None, slack: float) -> list[Annotation]:
    rows = []
    for number, row in read_rows(path, 3):
        where = f"{path}, line {number}"
        step = count_of(row[0], f"{where}: the number of a step") if row[0].isdecimal() else 0
        if not 1 <= step <= n_steps:
            raise FormatError(f"{where}: there is no step {row[0]!r}; the task has {n_steps}, counted from 1")
        rows.append(tools.annotation(step - 1, row[1], row[2], where, duration, slack))
    return rows


def _read_validation(path: Path | None, recordings: list[Recording]) -> tuple[Split, ...]:
    """Return the split into the validation list and the rest, if both have recordings here."""
    if path is None:
        return ()
    listed = {f"{row[0]}_{row[1]}" for _, row in read_rows(path, 2)}
    names = [recording.id for recording in recordings]
    test = [name for name in names if name in listed]
    return tools.split("validation", (name for name in names if name not in listed), test)
