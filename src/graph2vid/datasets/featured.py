"""A plain folder of videos with features.

``clips/VIDEO.npy`` (clips by dimensions), one flow graph (``NAME.flow``), ``steps.npy`` (an embedding per step of it)
or the name of a text embedder of the same space, ``annotations.csv`` (video, step, start, end), and where known
``durations.csv`` (video, seconds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.captioned import DURATIONS, named_step, read_durations, step_names
from graph2vid.datasets.dataset import Annotation, Dataset, Embeddings, Evidence, HowTo, Recording, Task
from graph2vid.datasets.reader_tools import ClipOptions, Trouble
from graph2vid.errors import FormatError
from graph2vid.evidence import check_clips, cosine_similarity, read_array, step_vectors, text_embedder
from graph2vid.flow import FlowGraph


@dataclass(frozen=True)
class FeaturedOptions(ClipOptions):
    """How a folder of features is read: see :func:`load`."""

    told = ("clip_seconds", "offset", "comparison", "embedder")

    comparison: str = "cosine"
    axis: str | Sequence[str] = "auto"
    embedder: str | None = None


@dataclass(frozen=True)
class _Arrays:
    """Evidence from features of clips and steps."""

    files: Mapping[str, Path]
    steps: NDArray[Any]
    comparison: Literal["cosine", "dot"]
    axis: str

    def clips(self, video: str) -> NDArray[Any]:
        """Return the features of a video, [clips, dimensions]."""
        path = self.files[video]
        array = read_array(path)
        if array.ndim != 2 or not array.size:
            raise FormatError(f"{path} must have two axes [clips, dimensions] and a clip, not shape {array.shape}")
        if not np.isfinite(array).all():
            raise FormatError(f"{path} holds numbers that are not finite")
        time = tools.time_axis(array.shape, self.steps.shape[1], -1, self.axis, path, "the steps", "dimensions")
        return array if time == 0 else array.T

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the features of the steps and of the clips."""
        return Embeddings(self.steps, self.clips(recording.id), self.comparison)

    def __call__(self, recording: Recording) -> Evidence:
        clips = self.clips(recording.id)
        if self.comparison == "dot":
            return Evidence(self.steps @ clips.T, None, "scores")
        return Evidence(cosine_similarity(self.steps, clips), None, "cosine")


@tools.reader("featured", FeaturedOptions)
def load(data: Path, options: FeaturedOptions, trouble: Trouble) -> Dataset:
    """Read a folder of features.

    Parameters
    ----------
    data : path
        The folder with ``clips/``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset : float
        The length of a clip, and the time of the first, in seconds.
    comparison : {"cosine", "dot"}
        How clips and steps are compared.
    axis : "auto", or "clips" and "dims" in the order of the arrays
        By default told from the number of dimensions of the steps.
    embedder : str, optional
        Embeds the texts of the steps, where there is no ``steps.npy``; its dimensions must be those of the clips.

    Returns
    -------
    Dataset
        One task; its flow graph is ``flows["manual"]``.
    """
    tools.folder(data, "clips/, NAME.flow, steps.npy and annotations.csv")
    comparison: Any = tools.choice(options.comparison, "comparison", ("cosine", "dot"))
    files = tools.stems(tools.folder(data / "clips", "VIDEO.npy, clips by dimensions"), ".npy")
    graphs = tools.stems(data, ".flow")
    if len(graphs) != 1:
        raise FormatError(f"{data} has {len(graphs)} flow graphs (.flow); there should be one")
    (name, path), *_ = graphs.items()
    flow = FlowGraph.load(path)
    texts = tuple(step.text or step.id for step in flow.steps)
    task = Task.of_steps(name, flow.title or name, texts, flows={"manual": flow})
    task = Task.of_steps(name, task.title, texts, flows=task.flows, howto=HowTo(texts, task.correspondence, task.flows))
    axis = tools.first_axis(options.axis, "clips", "dims")
    source = _Arrays(files, _step_features(data, texts, options.embedder), comparison, axis)
    annotated = _annotations(data / "annotations.csv", task, str(path), trouble)
    durations = read_durations(data / DURATIONS)
    videos = ((video, rows, durations.get(video), source, task, options) for video, rows in annotated.items())
    recordings = trouble.each(videos, _recording)
    spare = [video for video in files if video not in annotated]
    left_out = f"{data / 'clips'}: videos without annotations are left out: {len(spare)}"
    return trouble.dataset(
        recordings,
        data,
        remarks=[f"{left_out}, {video} first" for video in spare[:1]],
        tasks={task.id: task},
        splits=(),
        evidence=source,
    )


def _step_features(data: Path, texts: Sequence[str], embedder: str | None) -> NDArray[Any]:
    path = data / "steps.npy"
    if path.exists():
        found = read_array(path)
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            wanted = f"a row of finite numbers for each of the {len(texts)} steps"
            raise FormatError(f"{path} has shape {found.shape}; it should have {wanted}")
        return found
    if embedder is None:
        raise FormatError(f"there is no {path}: write one (an embedding per step), or say -o embedder=NAME")
    return np.asarray(step_vectors(texts, text_embedder(embedder)))


def _annotations(path: Path, task: Task, source: str, trouble: Trouble) -> dict[str, list[Annotation]]:
    rows = tools.read_rows(path, 4)
    if rows and [cell.lower() for cell in rows[0][1][:4]] == ["video", "step", "start", "end"]:
        rows = rows[1:]
    names = step_names(task)
    found: dict[str, list[Annotation]] = {}
    for number, (video, named, start, end, *_) in rows:
        where = f"{path}, line {number}"
        with trouble.passing():
            step = named_step(named, len(task.steps), names, source, where)
            found.setdefault(video, []).append(tools.annotation(step, start, end, where, None, 0.0))
    if not found:
        raise FormatError(f"{path} has no annotations: rows are video, step, start, end")
    return found


def _recording(
    video: str,
    rows: Sequence[Annotation],
    duration: float | None,
    source: _Arrays,
    task: Task,
    options: FeaturedOptions,
) -> Recording:
    if video not in source.files:
        raise FormatError(f"video {video} is annotated but has no features: there is no clips/{video}.npy")
    n_clips = len(source.clips(video))
    last = max(row.end for row in rows)
    check_clips(f"video {video}", n_clips, options.clip_seconds, options.offset, duration=duration, last=last)
    return Recording(video, task.id, options.clip_seconds, options.offset, n_clips, tuple(rows))
