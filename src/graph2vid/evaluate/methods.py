"""The methods that stand side by side: what each of them asks of a video's costs.

A method either labels the clips directly (the argmaxes), or names a *plan*: a flow graph, and for each of its
elements the step of the procedure whose match costs it uses. The plans of all methods read the same costs.

==================  =========================================================================================
argmax              each clip the step of highest score
argmax+background   the same with the score of "no step" among them, where the scores have it
bag                 the steps in any order
linear              the steps in one order: the listed one, or that of their mean position in the training split
written             the steps in any order, that of linear being the most likely
graph:SOURCE        the steps in any order that a flow graph allows (mined, expert, manual, rules, learned, …)
true-order          the steps that the video shows, by their first occurrence: what knowing the order gives
true-order-repeats  every occurrence of a step in its true place
==================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Durations, check_costs, order_trust
from graph2vid.datasets import Dataset, Evidence, Recording, Split, Task
from graph2vid.errors import InputError
from graph2vid.evaluate.habits import Habits, habits_of
from graph2vid.evaluate.labels import Labels, labels_from_annotations
from graph2vid.evaluate.metrics import segments
from graph2vid.evidence import Costs
from graph2vid.flow import FlowGraph, add_soft_precedence, as_written

MINED = "graph:mined"
EXPERT = "graph:expert"


@dataclass(frozen=True)
class Video:
    """A test video as the methods see it.

    Attributes
    ----------
    recording : Recording
    task : Task
    split : Split or None
        Where the video is tested, and what may be learnt from.
    prepared : callable
        From the recording to its evidence and costs: kept where there is room, else computed anew.
    truth : int64 [N]
        The dataset step of each clip, -1 = background.
    frames : int64 [F] or None
        The same of each frame, where clips are made of frames; metrics are of frames then.
    """

    recording: Recording
    task: Task
    split: Split | None
    prepared: Callable[[Recording], tuple[Evidence, Costs]]
    truth: Labels
    frames: Labels | None = None

    @property
    def evidence(self) -> Evidence:
        """What the video says about the steps."""
        return self.prepared(self.recording)[0]

    @property
    def costs(self) -> Costs:
        """The costs over ``task.procedure``, the same for all methods."""
        return self.prepared(self.recording)[1]

    @property
    def scored(self) -> Labels:
        """The true labels that metrics compare with: of frames where there are some, else of clips."""
        return self.truth if self.frames is None else self.frames

    def on_frames(self, labels: Labels) -> Labels:
        """Return labels of clips, or of the rows of scores, as labels of frames."""
        if self.frames is None:
            return labels
        notes = self.recording.notes
        rows = np.arange(len(self.frames)) * notes["rows"] // len(self.frames)
        found: Labels = labels[rows if len(labels) == notes["rows"] else rows // notes["pool"]]
        return found

    def on_clips(self, labels: Labels) -> Labels:
        """Return labels of clips, of those of the rows of scores the middle one of each clip."""
        if len(labels) == self.recording.n_clips:
            return labels
        pool = self.recording.notes["pool"]
        middle = np.minimum(np.arange(self.recording.n_clips) * pool + pool // 2, len(labels) - 1)
        found: Labels = labels[middle]
        return found


@dataclass(frozen=True)
class Plan:
    """What is aligned with a video.

    Attributes
    ----------
    flow : FlowGraph
        Over E elements.
    rows : int64 [E]
        The step of the procedure behind each element.
    skip, repeat : float64 [E] or None
        Skip costs (∞: the step must appear) and repeat costs of the elements; None: as the video's costs say, and no
        repeats.
    clip : float64 [E] or None
        What each clip of an element costs besides its match cost.
    durations : Durations or None
        Costs of segments by their length.
    violation : float
        What the log-odds of edges with a confidence are multiplied by.
    temperature : float
        What the temperature of the costs is multiplied by.
    match : str or None
        A match policy in place of that of the video's costs.
    max_marginal : bool
        Max-marginal decoding: each clip has its most probable label over all alignments, instead of that of the
        cheapest one.
    """

    flow: FlowGraph
    rows: Labels
    skip: NDArray[np.float64] | None = None
    repeat: NDArray[np.float64] | None = None
    clip: NDArray[np.float64] | None = None
    durations: Durations | None = None
    violation: float = 1.0
    temperature: float = 1.0
    match: str | None = None
    max_marginal: bool = False

    @property
    def is_extended(self) -> bool:
        """Whether it asks for the extended model."""
        return self.repeat is not None or self.durations is not None or self.flow.has_choices


@dataclass(frozen=True)
class Absent:
    """A method has nothing for a video, and why."""

    reason: str = "no training videos"


Method: TypeAlias = Callable[[Video], "Plan | Labels | Absent"]


@dataclass
class MethodResult:
    """What one method did, video by video.

    Attributes
    ----------
    name : str
    labels : dict of int to int64 [N]
        By video: a step of the procedure per clip, -1 = background.
    metrics : dict of int to dict
        By video: the metrics, shares.
    absent : dict of int to str
        By video: why there is nothing.
    plans : dict of int to Plan
        By video: what was aligned; empty for the argmaxes.
    seconds : float
        Time of labelling all videos, compiling the procedures included.
    weights : dict of str to dict
        By split: the weights of its features, where they were chosen.
    """

    name: str
    labels: dict[int, Labels] = field(default_factory=dict)
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)
    absent: dict[int, str] = field(default_factory=dict)
    plans: dict[int, Plan] = field(default_factory=dict)
    seconds: float = 0.0
    weights: dict[str, dict[str, float]] = field(default_factory=dict)

    def place(self, part: MethodResult, places: Mapping[int, int]) -> None:
        """Take over what ``part`` has for the videos in ``places``, which gives their numbers here."""
        for what in ("labels", "metrics", "absent", "plans"):
            moved = {places[at]: found for at, found in getattr(part, what).items() if at in places}
            of_video = getattr(self, what) | moved
            setattr(self, what, {at: of_video[at] for at in sorted(of_video)})


@cache
def chain_of(length: int) -> FlowGraph:
    """Chains of one length are one graph for all videos, so that they are compiled once and run side by side."""
    return FlowGraph.chain([str(place) for place in range(length)])


@cache
def _bag(length: int) -> FlowGraph:
    return FlowGraph.bag([str(place) for place in range(length)])


def _all_rows(task: Task) -> Labels:
    return np.arange(len(task.procedure), dtype=np.int64)


Learns = TypeVar("Learns", bound=Callable[..., Any])


def learnt_once(method: Learns) -> Learns:
    """Let a method that learns from the training videos of (task, split) do so once, and keep it in ``_known``."""

    @wraps(method)
    def found(self: Any, task: Task, split: Split | None, *more: Any) -> Any:
        key = (method.__name__, task.id, None if split is None else split.name, *more)
        if key not in self._known:
            self._known[key] = method(self, task, split, *more)
        return self._known[key]

    return found  # type: ignore[return-value]


def true_labels(dataset: Dataset, recording: Recording, frames: int | None = None) -> Labels:
    """Lay the annotations of a recording on its clips by the rule of its dataset: dataset steps, -1 background.

    With ``frames``, on so many frames in place of the clips that are made of them.
    """
    n_clips, seconds = recording.n_clips, recording.clip_seconds
    if frames is not None:
        n_clips, seconds = frames, seconds / recording.notes["pool"] * recording.notes["rows"] / frames
    return labels_from_annotations(
        [(row.step, row.start, row.end) for row in recording.annotations],
        n_clips,
        seconds,
        recording.offset,
        rule=dataset.label_rule,
        overlapping=dataset.label_overlapping,
    )


def instructions_in_order(task: Task, steps: Iterable[int]) -> tuple[int, ...]:
    """Return the steps of the procedure that stand for these dataset steps, in their order, each once."""
    return tuple(dict.fromkeys(instruction for step in steps for instruction in task.correspondence[step]))


@dataclass
class Training:
    """What is learnt from the training splits: per task and split, once.

    Attributes
    ----------
    is_open : bool
        Whether the steps of a task are whatever classes there are: those that its training videos show are grounded,
        and may be skipped at the log-odds of being shown there. Otherwise they are those of its procedure.
    """

    dataset: Dataset
    linear: str = "listed"
    min_support: int = 5
    tolerance: float = 0.0
    is_open: bool = False
    _known: dict[Any, Any] = field(default_factory=dict)

    def recordings(self, task: Task, split: Split | None) -> list[Recording]:
        """Return the training videos of a task; none without a split."""
        train = set() if split is None else set(split.train) - set(split.test)
        return [one for one in self.dataset.recordings if one.task == task.id and one.id in train]

    def truth(self, recording: Recording) -> Labels:
        """Return the true labels of a video."""
        if recording.id not in self._known:
            self._known[recording.id] = true_labels(self.dataset, recording)
        found: Labels = self._known[recording.id]
        return found

    @learnt_once
    def sequences(self, task: Task, split: Split | None) -> list[tuple[int, ...]]:
        """Return the order of first occurrences, in steps of the procedure, of each training video of the task."""
        orders = (instructions_in_order(task, recording.order) for recording in self.recordings(task, split))
        return [order for order in orders if order]

    @learnt_once
    def habits(self, task: Task, split: Split | None) -> Habits | None:
        """Return what the training videos of a task show; None where there are none."""
        return habits_of(task, [(one, self.truth(one)) for one in self.recordings(task, split)])

    @learnt_once
    def steps(self, task: Task, split: Split | None) -> Labels:
        """Return the steps that are grounded: those of the procedure, or those that training videos show."""
        habits = self.habits(task, split) if self.is_open else None
        return _all_rows(task) if habits is None else np.flatnonzero(habits.shown).astype(np.int64)

    def skip(self, task: Task, split: Split | None, rows: Labels) -> NDArray[np.float64] | None:
        """Return the skip costs of elements of a plan that training videos tell; None: none."""
        if not self.is_open:
            return None
        habits = self.habits(task, split)
        return np.zeros(len(rows)) if habits is None else habits.skip(1.0)[rows]

    @learnt_once
    def mined(self, task: Task, split: Split | None) -> FlowGraph | None:
        """Return the graph of the precedences that the training videos (almost) never violate; None without a split.

        Where the split has no video of the task, nothing is known, and the graph has no edges.
        """
        if split is None:
            return None
        sequences = self.sequences(task, split)
        flow = FlowGraph.mine(
            sequences, task.procedure, min_support=self.min_support, tolerance=self.tolerance, title=task.title
        )
        kept = set(self.steps(task, split).tolist())
        return flow.without([step for step in range(len(flow)) if step not in kept])

    @learnt_once
    def soft_precedence(self, task: Task, split: Split | None, flow: FlowGraph) -> FlowGraph:
        """Return a graph with the precedences added that most training videos honour, though not all."""
        place = {step: at for at, step in enumerate(self.steps(task, split).tolist())}
        orders = [[place[step] for step in order if step in place] for order in self.sequences(task, split)]
        return add_soft_precedence(flow, orders, min_support=self.min_support)

    @learnt_once
    def linear_order(self, task: Task, split: Split | None) -> Labels:
        """Return the steps in the listed order, or by their mean relative position in the training videos.

        A step's position in a video is its place among the video's first occurrences, from 0 (first) to 1 (last).
        Steps that no training video shows come last, as listed.
        """
        if self.linear == "listed":
            return _all_rows(task)
        positions: list[list[float]] = [[] for _ in task.procedure]
        for sequence in self.sequences(task, split):
            for place, step in enumerate(sequence):
                positions[step].append(place / max(len(sequence) - 1, 1))
        means = [float(np.mean(seen)) if seen else 2.0 for seen in positions]
        return np.argsort(means, kind="stable").astype(np.int64)


# -- the methods ---------------------------------------------------------------------------------------------


def argmax(video: Video) -> Labels:
    """Label each clip (or frame, where clips are made of frames) with the step of highest score."""
    evidence = video.evidence
    best = evidence.similarity.argmax(axis=0) if evidence.frames is None else evidence.frames[0]
    return np.asarray(best, dtype=np.int64)


def argmax_with_background(video: Video) -> Labels | Absent:
    """Label each clip with the step of highest score, or background where that scores higher still."""
    evidence = video.evidence
    similarity, background = evidence.similarity, evidence.background
    if background is None:
        return Absent("no score of background")
    if evidence.frames is not None:
        return np.asarray(evidence.frames[1], dtype=np.int64)
    return np.where(similarity.max(axis=0) >= background, argmax(video), -1).astype(np.int64)


def _any_order(training: Training, video: Video) -> Plan:
    """Plan the steps in any order."""
    rows = training.steps(video.task, video.split)
    return Plan(_bag(len(rows)), rows, skip=training.skip(video.task, video.split, rows))


def true_order(video: Video) -> Plan | Labels:
    """Plan the steps that are there, in the order of their first occurrences."""
    return _true_chain(video, instructions_in_order(video.task, (label for label, _, _ in segments(video.truth))))


def true_order_with_repeats(video: Video) -> Plan | Labels:
    """Plan every occurrence: a segment of one dataset step is one element for each of its instructions."""
    correspondence = video.task.correspondence
    rows = [instruction for label, _, _ in segments(video.truth) for instruction in correspondence[label]]
    return _true_chain(video, rows)


def _true_chain(video: Video, rows: Sequence[int]) -> Plan | Labels:
    """Plan a chain none of which may be left out, since all of it is known to be shown.

    With more elements than clips (several instructions to a short step), the first of each segment.
    """
    n_clips = len(video.truth)
    if len(rows) > n_clips:
        correspondence = video.task.correspondence
        rows = [correspondence[label][0] for label, _, _ in segments(video.truth) if correspondence[label]]
    if not rows:  # nothing of the procedure is there
        return np.full(n_clips, -1, dtype=np.int64)
    required = None if video.costs.skip is None else np.full(len(rows), np.inf)
    return Plan(chain_of(len(rows)), np.array(rows, dtype=np.int64), skip=required)


def _linear(training: Training, video: Video) -> Plan:
    order = training.linear_order(video.task, video.split)
    order = order[np.isin(order, training.steps(video.task, video.split))]
    return Plan(chain_of(len(order)), order, skip=training.skip(video.task, video.split, order))


@cache
def _expected(length: int) -> FlowGraph:
    return as_written(_bag(length))


def _written(training: Training, video: Video) -> Plan:
    """Plan the steps in any order, that in which they are listed being the most likely."""
    order = training.linear_order(video.task, video.split)
    order = order[np.isin(order, training.steps(video.task, video.split))]
    return _guessed(video, _expected(len(order)), order, training.skip(video.task, video.split, order))


def _mined(training: Training, video: Video) -> Plan | Absent:
    flow = training.mined(video.task, video.split)
    if flow is None:
        return Absent()
    rows = training.steps(video.task, video.split)
    return Plan(flow, rows, skip=training.skip(video.task, video.split, rows))


def _given(training: Training, source: str, video: Video) -> Plan | Absent:
    flow = video.task.flows.get(source)
    if flow is None:
        return Absent("no graph")
    rows = np.array(video.task.elements.get(source, range(len(flow))), dtype=np.int64)
    return _guessed(video, flow, rows, training.skip(video.task, video.split, rows))


def _guessed(video: Video, flow: FlowGraph, rows: Labels, skip: NDArray[np.float64] | None) -> Plan:
    """Plan a graph, some of whose order may be guessed: the video says how far that is to be trusted."""
    if not flow.confidences:
        return Plan(flow, rows, skip=skip)
    costs = video.costs
    skips = costs.skip[rows] if skip is None and costs.skip is not None else skip
    return Plan(flow, rows, skip, violation=order_trust(flow, check_costs(flow, costs.match[rows], costs.drop, skips)))


def methods_of(
    dataset: Dataset, training: Training, wanted: Sequence[str] | None = None, *, with_background: bool
) -> dict[str, Method]:
    """Return the methods named in ``wanted`` in the order of the tables; ``graph`` stands for all graphs.

    With None, every method that the dataset has something for, but mined graphs not beside those of experts: the few
    executions of a task say less.

    Parameters
    ----------
    dataset : Dataset
    training : Training
    wanted : sequence of str, optional
    with_background : bool
        Whether scores of background are there.

    Raises
    ------
    InputError
        For a name that the dataset has nothing for; the message lists those it has.
    """
    tasks = dataset.tasks.values()
    known: dict[str, Method] = {"argmax": argmax}
    if with_background:
        known["argmax+background"] = argmax_with_background
    known |= {"bag": partial(_any_order, training), "linear": partial(_linear, training)}
    known |= {"written": partial(_written, training)}
    known |= {f"graph:{source}": partial(_given, training, source) for task in tasks for source in task.flows}
    if MINED not in known and any(training.sequences(task, split) for split in dataset.splits for task in tasks):
        known[MINED] = partial(_mined, training)
    known |= {"true-order": true_order, "true-order-repeats": true_order_with_repeats}
    if wanted is None:
        return {name: method for name, method in known.items() if name != MINED or EXPERT not in known}
    chosen = set()
    for name in wanted:
        found = {name} & set(known) or {method for method in known if method.startswith(f"{name}:")}
        if not found:
            raise InputError(f"there is no method {name!r} here; there are: {', '.join(known)}")
        chosen |= found
    return {name: method for name, method in known.items() if name in chosen}
