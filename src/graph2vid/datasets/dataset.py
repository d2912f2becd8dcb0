"""What every reader of a dataset hands over: tasks, recordings, splits, and evidence on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph


@dataclass(frozen=True)
class Annotation:
    """One step of the dataset, seen from ``start`` to ``end``.

    Attributes
    ----------
    step : int
        Index into :attr:`Task.steps`.
    start, end : float
        Seconds from the beginning of the video, ``start <= end``.
    """

    step: int
    start: float
    end: float


@dataclass(frozen=True)
class HowTo:
    """The text that tells how a task is done.

    Attributes
    ----------
    instructions : tuple of str
        In the written order.
    correspondence : tuple of tuples of int
        For each step of the dataset the instructions that stand for it: possibly none, possibly several.
    flows : mapping of str to FlowGraph
        Ready graphs over the instructions by their source; may be empty.
    """

    instructions: tuple[str, ...]
    correspondence: tuple[tuple[int, ...], ...]
    flows: Mapping[str, FlowGraph] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One procedure of a dataset.

    Attributes
    ----------
    id : str
    title : str
        What the task is called.
    steps : tuple of str
        The dataset's own steps: what annotations speak of.
    procedure : tuple of str
        The steps that are grounded: the instructions where the task has some, else the same as ``steps``.
    correspondence : tuple of tuples of int
        For each dataset step the indices into ``procedure`` that stand for it: possibly none, possibly several.
    flows : mapping of str to FlowGraph
        Ready graphs over ``procedure`` by their source ("expert", "manual", "predicted", …); may be empty.
    elements : mapping of str to tuple of int
        Of graphs over some of ``procedure`` only: the step behind each of their elements, one possibly several times.
    howto : HowTo or None
        The text that the task comes with, whether or not it is what is grounded.
    """

    id: str
    title: str
    steps: tuple[str, ...]
    procedure: tuple[str, ...]
    correspondence: tuple[tuple[int, ...], ...]
    flows: Mapping[str, FlowGraph] = field(default_factory=dict)
    howto: HowTo | None = None
    elements: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_steps(cls, name: str, title: str, steps: tuple[str, ...], **rest: Any) -> Task:
        """Return the task whose procedure is the steps themselves; ``rest``: flows, howto, elements."""
        return cls(name, title, steps, steps, tuple((step,) for step in range(len(steps))), **rest)

    def __repr__(self) -> str:
        return f"Task({self.id!r}, {self.title!r}, {len(self.procedure)} steps)"

    def __post_init__(self) -> None:
        where, count = f"task {self.id}", len(self.procedure)
        if not self.steps or not count:
            raise InputError(f"{where} has no {'procedure' if self.steps else 'steps'}")
        if len(self.correspondence) != len(self.steps):
            raise InputError(f"{where}: {len(self.correspondence)} correspondences for {len(self.steps)} steps")
        for step, row in enumerate(self.correspondence):
            if wrong := [instruction for instruction in row if not 0 <= instruction < count]:
                named = f"step {step} corresponds to instruction {wrong[0]}"
                raise InputError(f"{where}: {named}, but there are {count} (counted from 0)")
        for name, flow in self.flows.items():
            if len(flow) != len(self.elements.get(name, self.procedure)):
                raise InputError(f"{where}: the flow graph {name!r} has {len(flow)} steps, the procedure {count}")


@dataclass(frozen=True)
class Recording:
    """One annotated video, cut into clips.

    Attributes
    ----------
    id : str
    task : str
        The id of its task.
    clip_seconds, offset : float
        Clip j covers ``offset + j * clip_seconds`` to ``offset + (j + 1) * clip_seconds`` seconds.
    n_clips : int
        How many clips there are.
    annotations : tuple of Annotation
        In the order of the file.
    notes : mapping
        What the dataset says beside (skipped steps, errors, sources of the evidence, …).
    """

    id: str
    task: str
    clip_seconds: float
    offset: float
    n_clips: int
    annotations: tuple[Annotation, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Recording({self.id!r}, task {self.task!r}, {self.n_clips} clips of {self.clip_seconds:g} s)"

    def __post_init__(self) -> None:
        if self.n_clips < 1 or not 0 < self.clip_seconds < math.inf or not math.isfinite(self.offset):
            clips = f"{self.n_clips} of {self.clip_seconds} s from {self.offset} s"
            raise InputError(f"recording {self.id}: impossible clips: {clips}")

    @property
    def order(self) -> tuple[int, ...]:
        """The dataset steps that are seen, each once, by the start of their first annotation."""
        return tuple(dict.fromkeys(row.step for row in sorted(self.annotations, key=lambda row: row.start)))

    @property
    def overlaps(self) -> int:
        """How many annotations begin before another one that began earlier has ended."""
        count, latest = 0, -math.inf
        for row in sorted(self.annotations, key=lambda row: row.start):
            count += row.start < latest
            latest = max(latest, row.end)
        return count


@dataclass(frozen=True)
class Split:
    """Recording ids to learn from and to test on."""

    name: str
    train: tuple[str, ...]
    test: tuple[str, ...]


Kind: TypeAlias = Literal["scores", "cosine", "log_odds"]


@dataclass(frozen=True)
class Evidence:
    """What one video says about the steps of its procedure.

    Attributes
    ----------
    similarity : array [K, N]
        Steps of the procedure by clips; higher is more alike.
    background : array [N] or None
        The score of "no step" per clip, where the scores have such a class.
    kind : {"scores", "cosine", "log_odds"}
        What the numbers are; the default policies depend on it. Log-odds are nats against background.
    skip : array [K] or None
        Skip costs of the steps, where the evidence tells them.
    frames : int array [2, F] or None
        The step of highest score of each frame, and the same with background (-1) among them, where a clip is made of
        several frames.
    """

    similarity: NDArray[np.floating[Any]]
    background: NDArray[np.floating[Any]] | None
    kind: Kind
    skip: NDArray[np.floating[Any]] | None = None
    frames: NDArray[np.integer[Any]] | None = None

    def __repr__(self) -> str:
        return f"Evidence({self.similarity.shape[0]} steps, {self.similarity.shape[1]} clips, {self.kind})"


class Embeddings(NamedTuple):
    """Vectors behind the evidence of one video: what features are trained on.

    Attributes
    ----------
    steps : array [K, D]
        Of the steps of the procedure.
    clips : array [N, D]
    comparison : {"cosine", "dot"}
        How the two are compared.
    """

    steps: NDArray[np.floating[Any]]
    clips: NDArray[np.floating[Any]]
    comparison: Literal["cosine", "dot"] = "cosine"


@runtime_checkable
class Embedded(Protocol):
    """Evidence that rests on vectors: the :attr:`Dataset.evidence` of a reader may have this beside its numbers."""

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return the vectors of one recording; the same numbers in every process."""
        ...


@dataclass(frozen=True)
class Dataset:
    """A dataset as read: everything but the evidence, which is made per recording on demand.

    Attributes
    ----------
    name : str
    tasks : mapping of str to Task
    recordings : tuple of Recording
    splits : tuple of Split
        Empty where the dataset has none.
    evidence : callable
        From a recording of this dataset to its :class:`Evidence`. Can be pickled, and gives the same numbers in
        every process.
    problems : tuple of str
        What was passed over (``skip_bad``), one line each, naming the file.
    simulated : bool
        Whether the evidence is simulated rather than seen.
    remarks : tuple of str
        What was accepted but is worth knowing (overlapping annotations, …), likewise.
    label_rule : str
        How annotations are laid on clips: a rule of :func:`graph2vid.evaluate.labels.labels_from_annotations`.
    label_overlapping : str
        Which of overlapping annotations wins, as there: "start" (the later start) or "row" (the later row).
    options : mapping
        The options the dataset was read with.
    """

    name: str
    tasks: Mapping[str, Task]
    recordings: tuple[Recording, ...]
    splits: tuple[Split, ...]
    evidence: Callable[[Recording], Evidence]
    problems: tuple[str, ...] = ()
    simulated: bool = False
    remarks: tuple[str, ...] = ()
    label_rule: str = "cover"
    label_overlapping: str = "start"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self.recordings)} recordings of {len(self.tasks)} tasks)"

    def recording(self, name: str) -> Recording:
        """Return the recording with this id."""
        for recording in self.recordings:
            if recording.id == name:
                return recording
        raise InputError(f"{self.name} has no recording {name!r}")
