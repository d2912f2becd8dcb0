"""The layout that papers on action segmentation share: 50 Salads and others.

``mapping.txt`` (class number and name), ``groundTruth/VIDEO.txt`` (a name per clip), ``splits/train.splitK.bundle``
and ``splits/test.splitK.bundle`` (video names), and ``scores/VIDEO.npy`` (clips by classes) or
``features/VIDEO.npy`` (clips by dimensions) with ``step_features.npy`` (classes or steps by dimensions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._values import count_of
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import Annotation, Dataset, Embeddings, Evidence, Recording, Split, Task
from graph2vid.datasets.reader_tools import ClipOptions, Trouble, folder, read_lines
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import cosine_similarity, read_array

LAYOUTS = ("detect", "time-major", "feature-major")


@dataclass(frozen=True)
class Classes:
    """The classes of the scores, which of them are steps, and which background."""

    names: tuple[str, ...]
    steps: tuple[int, ...]
    background: tuple[int, ...]

    def label_numbers(self, path: Path) -> list[int]:
        """Read ground truth: the step of each line by its place among the steps, -1 for background."""
        label_of = dict.fromkeys(self.names, -1) | {self.names[at]: step for step, at in enumerate(self.steps)}
        labels = []
        for number, name in read_lines(path):
            if name not in label_of:
                raise FormatError(f"{path}, line {number}: label {name[:80]!r} is not in mapping.txt")
            labels.append(label_of[name])
        return labels


@dataclass(frozen=True)
class _Arrays:
    """Evidence from the scores or features of each video; made with the clips in the first axis."""

    files: Mapping[str, Path]
    classes: Classes
    layout: str
    class_features: NDArray[Any] | None

    @property
    def width(self) -> int:
        """Size of the axis that is not time."""
        return len(self.classes.names) if self.class_features is None else self.class_features.shape[1]

    def read(self, video: str, n_labels: int) -> NDArray[Any]:
        """Return the array of a video, [clips, classes or dimensions]."""
        path, width = self.files[video], self.width
        array = read_array(path)
        what, of = ("classes", "mapping.txt") if self.class_features is None else ("dimensions", "step_features.npy")
        if array.ndim != 2:
            raise FormatError(f"{path} must have two axes [clips, {what}], not shape {array.shape}")
        stated = {"time-major": "first", "feature-major": "second"}.get(self.layout, "auto")
        time = tools.time_axis(array.shape, width, n_labels, stated, path, of, what)
        clips = array if time == 0 else array.T
        if not np.isfinite(clips).all():
            raise FormatError(f"{path} holds numbers that are not finite")
        if len(clips) == 0:
            raise FormatError(f"{path} has no clips")
        return clips

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the features of the steps and of the clips; scores are features whose axes are the classes."""
        features, steps = self.class_features, list(self.classes.steps)
        if features is None:
            return Embeddings(np.eye(self.width)[steps], self._clips(recording), "dot")
        return Embeddings(features if len(features) == len(steps) else features[steps], self._clips(recording))

    def _clips(self, recording: Recording) -> NDArray[np.float64]:
        return self.read(recording.id, recording.n_clips)[: recording.n_clips].astype(np.float64)

    def __call__(self, recording: Recording) -> Evidence:
        clips, features, steps = self._clips(recording), self.class_features, list(self.classes.steps)
        scores = clips.T if features is None else cosine_similarity(features, clips)
        if len(scores) == len(steps) and features is not None:
            return Evidence(scores, None, "cosine")
        background = scores[list(self.classes.background)].max(axis=0) if self.classes.background else None
        return Evidence(np.ascontiguousarray(scores[steps]), background, "scores" if features is None else "cosine")


@dataclass(frozen=True)
class SaladsOptions(ClipOptions):
    """How a folder in the action-segmentation layout is read: see :func:`load`."""

    told = ("clip_seconds", "offset", "layout")

    layout: str = "detect"
    background: str | Sequence[str] | None = None
    title: str = "salad"


@tools.reader("salads50", SaladsOptions)
def load(data: Path, options: SaladsOptions, trouble: Trouble) -> Dataset:
    """Read a folder in the action-segmentation layout.

    Parameters
    ----------
    data : path
        The folder with ``mapping.txt``, or one that has it in ``salads50/``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset : float
        The length of one line of ground truth, and the time of the first, in seconds.
    layout : {"detect", "time-major", "feature-major"}
        Whether the first or the second axis of the arrays is time. By default this is seen from the number of
        classes (or dimensions) and the length of the ground truth; a square array must be stated.
    background : str or sequence of str, optional
        The classes that are no steps; by default "background" (any case), if there is one.
    title : str
        What the procedure is called.

    Returns
    -------
    Dataset
        One task whose steps are the classes that are not background. Where ground truth and scores differ in
        length by at most 2 clips or 1%, both are cropped to the shorter, and a remark says so.
    """
    tools.choice(options.layout, "layout", LAYOUTS)
    if not (data / "mapping.txt").exists() and (data / "salads50" / "mapping.txt").exists():
        data = data / "salads50"
    folder(data, "mapping.txt, groundTruth/, splits/ and scores/")
    classes = read_mapping(data / "mapping.txt", options.background)
    truth = tools.stems(folder(data / "groundTruth", "VIDEO.txt, one label per clip"), ".txt")
    arrays = _arrays(data, classes, options.layout)
    recordings = trouble.each(((video, path, arrays, trouble, options) for video, path in truth.items()), _recording)
    splits: list[Split] = []
    if recordings:
        with trouble.passing():
            used = {recording.id for recording in recordings}
            directory = folder(data / "splits", "train.splitK.bundle and test.splitK.bundle")
            splits = read_splits(directory, used, set(truth), trouble)
    texts = tuple(classes.names[number].replace("_", " ") for number in classes.steps)
    task = Task.of_steps("salads50", options.title, texts)
    return trouble.dataset(recordings, data, tasks={task.id: task}, splits=tuple(splits), evidence=arrays)


def read_mapping(path: Path, background: str | Sequence[str] | None, usual: Sequence[str] = ("background",)) -> Classes:
    """Read the classes; ``usual``: the names of background where none is given, in any case."""
    names: dict[int, str] = {}
    for number, line in read_lines(path):
        index, _, name = line.partition(" ")
        if not index.isdecimal() or not name.strip():
            raise FormatError(f"{path}, line {number}: should be a class number and a name, not {line!r}")
        place = count_of(index, f"{path}, line {number}: the class number")
        if place in names or name.strip() in names.values():
            raise FormatError(f"{path}, line {number}: class {line!r} is there already")
        names[place] = name.strip()
    if sorted(names) != list(range(len(names))):
        raise FormatError(f"{path}: the classes must be numbered 0, 1, … without a gap, not {sorted(names)}")
    ordered = tuple(names[index] for index in range(len(names)))
    wanted = (background,) if isinstance(background, str) else background
    if wanted is None:
        wanted = [name for name in ordered if name.lower() in usual]
    for name in wanted:
        if name not in ordered:
            raise InputError(f"{path} has no class {name!r}, which is said to be background")
    dropped = tuple(index for index, name in enumerate(ordered) if name in wanted)
    steps = tuple(index for index in range(len(ordered)) if index not in dropped)
    if not steps:
        raise FormatError(f"{path}: there is no class that is a step")
    return Classes(ordered, steps, dropped)


def _arrays(data: Path, classes: Classes, layout: str) -> _Arrays:
    if (data / "scores").is_dir() or not (data / "features").is_dir():
        what = "VIDEO.npy, clips by classes (or features/ with VIDEO.npy, clips by dimensions)"
        return _Arrays(tools.stems(folder(data / "scores", what), ".npy"), classes, layout, None)
    path = data / "step_features.npy"
    if not path.exists():
        raise FormatError(f"{data / 'features'} needs {path}: embeddings of the classes or steps [classes, dimensions]")
    found, n_classes, n_steps = read_array(path), len(classes.names), len(classes.steps)
    if found.ndim != 2 or len(found) not in (n_classes, n_steps):
        wanted = f"a row for each of the {n_classes} classes or {n_steps} steps"
        raise FormatError(f"{path} has shape {found.shape}; it should have {wanted}")
    return _Arrays(tools.stems(data / "features", ".npy"), classes, layout, found)


def _recording(video: str, path: Path, arrays: _Arrays, trouble: Trouble, options: SaladsOptions) -> Recording:
    labels = arrays.classes.label_numbers(path)
    if not labels:
        raise FormatError(f"{path} has no labels")
    if video not in arrays.files:
        kind = "scores" if arrays.class_features is None else "features"
        wanted = path.parent.parent / kind / f"{video}.npy"
        raise FormatError(f"video {video} has ground truth but no {kind}: there is no {wanted}")
    n_clips = len(arrays.read(video, len(labels)))
    if n_clips != len(labels):
        lengths = f"{arrays.files[video]} has {n_clips} clips and {path} {len(labels)} labels"
        if abs(n_clips - len(labels)) > max(2, 0.01 * max(n_clips, len(labels))):
            raise FormatError(f"{lengths}: they do not belong together")
        n_clips = min(n_clips, len(labels))
        trouble.remarks.append(f"{lengths}; both are cropped to {n_clips}")
    clip_seconds, offset = options.clip_seconds, options.offset
    annotations, start = [], 0
    for label, segment in groupby(labels[:n_clips]):
        stop = start + len(list(segment))
        if label >= 0:
            annotations.append(Annotation(label, offset + start * clip_seconds, offset + stop * clip_seconds))
        start = stop
    return Recording(video, "salads50", clip_seconds, offset, n_clips, tuple(annotations))


def read_splits(directory: Path, used: set[str], here: set[str], trouble: Trouble) -> list[Split]:
    """Read the splits that have videos on both sides; what they list beyond the videos that are here is remarked."""
    bundles = tools.stems(directory, ".bundle")
    names = {stem.partition(".")[2] for stem in bundles if stem.startswith(("train.", "test."))}
    if not names:
        raise FormatError(f"{directory} has no train.splitK.bundle and test.splitK.bundle")
    splits: list[Split] = []
    named: dict[str, None] = {}
    for name in sorted(names, key=tools.natural):
        with trouble.passing():
            sides = []
            for side in ("train", "test"):
                path = bundles.get(f"{side}.{name}")
                if path is None:
                    raise FormatError(f"{directory} has no {side}.{name}.bundle")
                listed = dict.fromkeys(Path(line).name.removesuffix(".txt") for _, line in read_lines(path))
                named |= listed
                sides.append(tuple(video for video in listed if video in used))
            both = [video for video in sides[0] if video in sides[1]]
            if both:
                raise FormatError(f"{directory}: video {both[0]} is in the training and the test list of {name}")
            splits += tools.split(name, *sides)
            if not all(sides):
                trouble.remarks.append(f"{directory}: nothing is left on one side of {name}; it is not used")
    absent = [video for video in named if video not in here]
    if len(absent) == len(named):
        raise FormatError(f"{directory}: no list names a video that is here")
    if absent:
        trouble.remarks.append(f"{directory} lists videos that are not here: {len(absent)}, {absent[0]} first")
    return splits
