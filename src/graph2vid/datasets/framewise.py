"""Frame-wise scores of any network, in the plain folder of action segmentation.

``mapping.txt`` (class number and name), ``groundTruth/VIDEO.txt`` (a class name per frame), ``scores/VIDEO.npy``
(frames by classes, or classes by frames; the stages of a network before them: the last counts) or text files of
predicted labels as MS-TCN, ASFormer and DiffAct write them, and, where there are such,
``splits/{train,test}.splitK.bundle``, ``activities.csv`` (video, activity) and flow graphs (``*.flow``, of all videos,
or ``ACTIVITY.flow``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import read_text
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import Annotation, Dataset, Evidence, Recording, Split, Task
from graph2vid.datasets.reader_tools import LabelOptions, Trouble, folder
from graph2vid.datasets.salads50 import Classes, read_mapping, read_splits
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import read_array
from graph2vid.flow import FlowGraph

NAME = "framewise"
KINDS = ("auto", "probabilities", "log-probabilities", "logits", "labels")
BACKGROUND = ("background", "sil")
"""Names of background, in any case. Evaluations of action segmentation count all but the first as segments."""

SCORES = ("scores", "probs", "logits", "results", "prediction", "predictions")
"""Folders that scores or predicted labels are looked for in."""

_HEADER = "### Frame level recognition: ###"
_LEAST = 1e-6  # a probability below is as good as none: its logarithm must stay finite
_ROUNDING = 0.02  # of sums of probabilities, which may have been stored in half precision
_LENGTHS = 0.02  # how far, as a share, the ratio of two lengths may lie from that of the other videos
_PARTS = re.compile(r"[_\-.]")
_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class FramewiseOptions(LabelOptions):
    """How a folder of frame-wise scores is read: see :func:`load`."""

    told = ("scores", "fps")

    scores: str = "auto"
    axis: str | Sequence[str] = "auto"
    fps: float = 1.0
    background: str | Sequence[str] | None = None
    activity: str | int | None = "auto"
    most_clips: int = 1000
    title: str = ""

    def __post_init__(self) -> None:
        tools.choice(self.scores, "scores", KINDS)
        if not isinstance(self.fps, int | float) or not 0 < self.fps < float("inf"):
            raise InputError(f"fps must be a positive number of frames per second, not {self.fps!r}")
        if not isinstance(self.most_clips, int) or self.most_clips < 1:
            raise InputError(f"most_clips must be a whole number from 1, not {self.most_clips!r}")


@dataclass(frozen=True)
class _Scores:
    """Evidence from the scores of each video, which are read when asked for and not kept."""

    files: Mapping[str, Path]
    classes: Classes
    axis: str
    kind: str = "auto"
    pool: int = 1

    def rows(self, video: str, n_labels: int) -> NDArray[Any]:
        """Return the scores of a video as they are in the file, [frames, classes]."""
        path, width = self.files[video], len(self.classes.names)
        if path.suffix.lower() != ".npy":
            return np.eye(width, dtype=np.float32)[_predicted(path, self.classes)]
        array = read_array(path)
        if array.ndim > 2:  # stages, or a batch of one, before the two axes that count
            array = array.reshape(-1, *array.shape[-2:])[-1] if array.size else array.reshape(0, 0)
        if array.ndim != 2:
            raise FormatError(f"{path} must have two axes [frames, classes], not shape {array.shape}")
        if not array.size:
            raise FormatError(f"{path} has no frames")
        lengths = tools.time_axis(array.shape, width, n_labels, self.axis, path, "mapping.txt", "classes")
        return array if lengths == 0 else array.T

    def told_kind(self, rows: NDArray[Any], path: Path) -> str:
        """Say what the numbers of a video are, from up to 1,000 of its frames."""
        if path.suffix.lower() != ".npy":
            return "labels"
        with np.errstate(invalid="ignore"):
            some = rows[:: max(1, len(rows) // 1000)].astype(np.float64)
        if np.isnan(some).any() or np.isposinf(some).any():
            raise FormatError(f"{path} holds numbers that are not finite")
        if (some >= 0).all() and (abs(some.sum(axis=1) - 1) < _ROUNDING).all():
            return "probabilities"
        with np.errstate(over="ignore"):
            if (abs(np.exp(some).sum(axis=1) - 1) < _ROUNDING).all():
                return "log-probabilities"
        return "logits"

    def __call__(self, recording: Recording) -> Evidence:
        path = self.files[recording.id]
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused below
            rows = self.rows(recording.id, recording.notes["frames"])[: recording.notes["rows"]].astype(np.float32)
        if self.kind in ("probabilities", "labels"):
            if (rows < 0).any():
                raise FormatError(f"{path} holds numbers below 0, which are no probabilities")
            rows = np.log(np.maximum(rows, _LEAST))
        elif self.kind == "log-probabilities":
            rows = np.maximum(rows, np.float32(np.log(_LEAST)))
        if not np.isfinite(rows).all():
            raise FormatError(f"{path} holds numbers that are not finite")
        steps, background = list(self.classes.steps), list(self.classes.background)
        best = rows[:, steps].argmax(axis=1)
        with_background = best
        if background:
            other = rows[:, background].max(axis=1)
            with_background = np.where(rows[np.arange(len(rows)), np.array(steps)[best]] >= other, best, -1)
        starts = np.arange(0, len(rows), self.pool)
        clips = np.add.reduceat(rows, starts, axis=0) / np.diff([*starts, len(rows)])[:, None]
        return Evidence(
            np.ascontiguousarray(clips[:, steps].T, dtype=np.float32),
            clips[:, background].max(axis=1) if background else None,
            "scores",
            frames=np.array([best, with_background], dtype=np.int32),
        )


@tools.reader(NAME, FramewiseOptions)
def load(data: Path, options: FramewiseOptions, trouble: Trouble) -> Dataset:
    """Read a folder of frame-wise scores.

    Parameters
    ----------
    data : path
        The folder with ``mapping.txt``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    scores : {"auto", "probabilities", "log-probabilities", "logits", "labels"}
        What the numbers are. By default told from the data: rows that sum to 1 are probabilities, rows whose
        exponentials do are log-probabilities, others are logits or margins.
    axis : "auto", or two of "frames" and "classes" in the order of the arrays
        By default told from the number of classes and the length of the ground truth.
    fps : float
        Frames of ground truth per second.
    background : str or sequence of str, optional
        The classes that are no steps; by default "background" and "SIL" (any case), those that there are.
    activity : "auto", "none" (or None) or int
        Which part of a video's name (between ``_``, ``-`` and dots, from 0; negative from the end) is its activity,
        each with a procedure of its own. By default ``activities.csv`` says it, or the names do: a part that is a word,
        that several videos share, and by which the videos show fewer classes each. "none": all are of one.
    most_clips : int
        Videos of more frames are grounded in clips of several; metrics are of frames all the same.
    title : str
        What the procedure is called; the name of the folder by default.

    Returns
    -------
    Dataset
        A task per activity; the steps of all are the classes that are not background. Flow graphs in the folder
        (``ACTIVITY.flow``, or one for all; also in ``procedures/``) are ``flows["manual"]``. Scores and ground truth
        may differ in rate, by the same ratio in all videos.
    """
    folder(data, "mapping.txt, groundTruth/ and scores/")
    classes = read_mapping(data / "mapping.txt", options.background, BACKGROUND)
    truth = tools.stems(folder(data / "groundTruth", "VIDEO.txt, one label per frame"), ".txt")
    splits: list[Split] = []
    if (data / "splits").is_dir():
        with trouble.passing():
            splits = read_splits(data / "splits", set(truth), set(truth), trouble)
    axis = tools.first_axis(options.axis, "frames", "classes")
    scores = _Scores(_score_files(data, splits), classes, axis)
    read = trouble.each(((video, path, scores, options) for video, path in truth.items()), _read_video)
    kind, read = _agreed_kind(read, options.scores, trouble)
    read = _agreed_ratio(read, trouble)
    pool = max([1, *(-(-one.rows // options.most_clips) for one in read)])
    scores = _Scores(scores.files, classes, axis, kind, pool)
    shown = {one.video: frozenset(label for label, _ in one.runs if label >= 0) for one in read}
    activities = _activities(data, options, shown, trouble)
    recordings = [_recording(one, activities[one.video], pool, options, classes) for one in read]
    texts = tuple(classes.names[number].replace("_", " ") for number in classes.steps)
    graphs = _flows(data, set(activities.values()), classes, trouble)
    tasks = {
        name: Task.of_steps(name, name, texts, **graphs.get(name, {})) for name in dict.fromkeys(activities.values())
    }
    if pool > 1:
        trouble.remarks.append(f"{data}: videos have up to {max(one.rows for one in read)} frames; a clip is {pool}")
    as_told = kind if options.scores != "auto" else f"{kind} (told from the data)"
    told = {"folder": data.resolve().name, "scores": as_told, "fps": options.fps}
    return trouble.dataset(
        recordings,
        data,
        tasks=tasks,
        splits=_of_those_here(splits, {one.id for one in recordings}),
        evidence=scores,
        options=told | ({"frames_per_clip": pool} if pool > 1 else {}),
    )


@dataclass(frozen=True)
class _Read:
    """What is known of a video: its ground truth in runs (label, frames), and the rows and kind of its scores."""

    video: str
    path: Path
    runs: list[tuple[int, int]] = field(repr=False)
    rows: int
    kind: str

    @property
    def frames(self) -> int:
        return sum(length for _, length in self.runs)


def _read_video(video: str, path: Path, scores: _Scores, options: FramewiseOptions) -> _Read:
    numbers = scores.classes.label_numbers(path)
    if not numbers:
        raise FormatError(f"{path} has no labels")
    if video not in scores.files:
        raise FormatError(
            f"video {video} has ground truth but no scores: there is no {path.parents[1]}/scores/{video}.npy"
        )
    rows = scores.rows(video, len(numbers))
    kind = scores.told_kind(rows, scores.files[video])
    if options.scores != "log-probabilities" and kind != "log-probabilities" and not np.isfinite(rows).all():
        raise FormatError(f"{scores.files[video]} holds numbers that are not finite")
    runs = [(label, len(list(run))) for label, run in groupby(numbers)]
    return _Read(video, scores.files[video], runs, len(rows), kind)


def _predicted(path: Path, classes: Classes) -> list[int]:
    """Read predicted labels: one line with blanks between them below a header, or a label per line."""
    text = read_text(path)
    _, found, after = text.partition(_HEADER)
    number = {name: at for at, name in enumerate(classes.names)}
    labels = (after if found else text).split()
    if not labels:
        raise FormatError(f"{path} has no labels")
    for label in labels:
        if label not in number:
            raise FormatError(f"{path}: label {label[:80]!r} is not in mapping.txt")
    return [number[label] for label in labels]


def _digits(name: str) -> str:
    return "".join(filter(str.isdecimal, name))


def _score_files(data: Path, splits: Sequence[Split]) -> dict[str, Path]:
    """Return the file of each video; in folders by split, the one of the split that tests it."""
    place = next((data / name for name in SCORES if (data / name).is_dir()), data / "scores")
    folder(place, "VIDEO.npy, frames by classes (or labels as predicted)")
    found: dict[str, Path] = {}
    for path in sorted(place.iterdir(), key=lambda path: tools.natural(path.name)):
        if path.is_dir():
            number = _digits(path.name)
            tested = {video for one in splits if _digits(one.name) == number for video in one.test}
            found |= {_stem(one): one for one in path.iterdir() if one.is_file() and _stem(one) in tested}
        elif not path.name.startswith("."):
            found.setdefault(_stem(path), path)
    return found


def _stem(path: Path) -> str:
    return path.stem if path.suffix.lower() in (".npy", ".txt", ".recog") else path.name


def _agreed_kind(read: Sequence[_Read], asked: str, trouble: Trouble) -> tuple[str, list[_Read]]:
    """Return what the numbers of all videos are, and the videos of which that holds."""
    if not read:
        return asked, []
    if asked != "auto":
        return asked, list(read)
    kinds = [one.kind for one in read]
    kind = max(dict.fromkeys(kinds), key=kinds.count)

    def same(one: _Read) -> _Read:
        if one.kind != kind:
            raise FormatError(f"{one.path} holds {one.kind}, most others {kind}; -o scores=KIND says what they are")
        return one

    return kind, trouble.each(((one,) for one in read), same)


def _agreed_ratio(read: Sequence[_Read], trouble: Trouble) -> list[_Read]:
    """Return the videos whose scores are as long for their ground truth as those of most."""
    if not read:
        return []
    ratio = float(np.median([one.rows / one.frames for one in read]))

    def fits(one: _Read) -> _Read:
        expected = ratio * one.frames
        if abs(one.rows - expected) > max(2.0, _LENGTHS * expected):
            lengths = f"{one.path} has {one.rows} frames and the ground truth {one.frames} labels"
            raise FormatError(f"{lengths}, where most videos have {ratio:.4g} to 1: they do not belong together")
        return one

    return trouble.each(((one,) for one in read), fits)


def _recording(one: _Read, activity: str, pool: int, options: FramewiseOptions, classes: Classes) -> Recording:
    rows, frames, runs = one.rows, one.frames, one.runs
    if rows != frames and abs(rows - frames) <= max(2, 0.01 * max(rows, frames)):  # of one rate: the end is cropped
        rows = frames = min(rows, frames)
    annotations, start = [], 0
    for label, length in runs:
        stop = min(start + length, frames)
        if label >= 0 and stop > start:
            annotations.append(Annotation(label, start / options.fps, stop / options.fps))
        start += length
    seconds = frames / rows * pool / options.fps
    # Papers count background named otherwise as a class of segments.
    counted = any(classes.names[at].lower() != BACKGROUND[0] for at in classes.background)
    notes = {"frames": frames, "rows": rows, "pool": pool, "background_counts": counted}
    return Recording(one.video, activity, seconds, 0.0, -(-rows // pool), tuple(annotations), notes)


def _activities(
    data: Path, options: FramewiseOptions, shown: Mapping[str, frozenset[int]], trouble: Trouble
) -> dict[str, str]:
    """Return the activity of each video; where all are of one, the title or the folder's name."""
    asked = "none" if options.activity is None else options.activity  # -o reads none as None
    table = data / "activities.csv"
    if asked == "auto" and table.exists():
        of = {row[0].removesuffix(".txt"): row[1] for _, row in tools.read_rows(table, 2)}
        for video in shown:
            if video not in of:
                raise FormatError(f"{table} does not say which activity video {video} shows")
        return {video: of[video] for video in shown}
    parts = {video: _PARTS.split(video) for video in shown}
    if isinstance(asked, int) and not isinstance(asked, bool):
        for video, of_name in parts.items():
            if not -len(of_name) <= asked < len(of_name):
                raise InputError(f"activity={asked}, but the name of video {video} has {len(of_name)} parts")
        return {video: of_name[asked] for video, of_name in parts.items()}
    if asked not in ("auto", "none"):
        raise InputError(f"activity is auto, none or the number of a part of the videos' names, not {asked!r}")
    named = _named_activities(parts, shown) if asked == "auto" else None
    if named is not None:
        count = len(set(named.values()))
        trouble.remarks.append(
            f"{data}: the names of the videos tell {count} activities: {', '.join(sorted(set(named.values()))[:8])}"
        )
    return named or dict.fromkeys(shown, options.title or data.resolve().name)


def _named_activities(parts: Mapping[str, Sequence[str]], shown: Mapping[str, frozenset[int]]) -> dict[str, str] | None:
    """Return the activities that names tell, or None: parted by them, videos must show a quarter fewer classes."""
    everything = frozenset().union(*shown.values())
    best, found = 0.75 * len(everything), None
    shortest = min(map(len, parts.values()), default=0)
    for place in range(-shortest, shortest):
        named = {video: of_name[place] for video, of_name in parts.items()}
        groups: dict[str, set[int]] = {}
        for video, name in named.items():
            groups.setdefault(name, set()).update(shown[video])
        sizes = [list(named.values()).count(name) for name in groups]
        if len(groups) < 2 or min(sizes) < 2 or not all(name.isalpha() for name in groups):
            continue
        mean = float(np.mean([len(group) for group in groups.values()]))
        if mean < best:
            best, found = mean, named
    return found


def _flows(data: Path, activities: set[str], classes: Classes, trouble: Trouble) -> dict[str, dict[str, Any]]:
    """Return the flow graph of each activity that has one, as the parts of its task."""
    files: dict[str, Path] = {}
    for place in (data, data / "procedures"):
        files |= tools.stems(place, ".flow") if place.is_dir() else {}
    class_of = {_words(classes.names[at]): step for step, at in enumerate(classes.steps)}
    found: dict[str, dict[str, Any]] = {}
    for stem, path in files.items():
        of = [name for name in activities if name == stem] or ([*activities] if len(files) == 1 else [])
        if not of:
            trouble.remarks.append(f"{path} is the procedure of no activity here: {', '.join(sorted(activities))}")
            continue
        with trouble.passing():
            flow = FlowGraph.load(path)
            rows = []
            for name, text in zip(flow.ids, flow.texts, strict=True):
                step = class_of.get(_words(text), class_of.get(_words(name)))
                if step is None:
                    raise FormatError(f"{path}: step {text[:80]!r} is no class of mapping.txt")
                rows.append(step)
            found |= {name: {"flows": {"manual": flow}, "elements": {"manual": tuple(rows)}} for name in of}
    return found


def _words(name: str) -> str:
    return _WORDS.sub(" ", name.lower()).strip()


def _of_those_here(splits: Sequence[Split], here: set[str]) -> tuple[Split, ...]:
    kept = (
        tools.split(one.name, *([v for v in side if v in here] for side in (one.train, one.test))) for one in splits
    )
    return tuple(split for one in kept for split in one)
