"""Run the methods over the test videos of a dataset, each video's costs computed once and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from graph2vid._evaluation_options import EvaluationOptions, ExperimentOptions
from graph2vid._frames import data_frame
from graph2vid._processes import cpu_count, worker_pool
from graph2vid.datasets import Dataset, Evidence, Recording, Split
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evaluate.dataset_defaults import (
    OPEN,
    check_preset,
    extended_of,
    folds_of,
    linear_of,
    tuned_for,
)
from graph2vid.evaluate.extended import LearntCosts
from graph2vid.evaluate.labels import Labels
from graph2vid.evaluate.method_runner import Mapper, MethodRunner, Progress, video_costs
from graph2vid.evaluate.methods import MethodResult, Training, Video, methods_of, true_labels
from graph2vid.evidence import Costs
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_KEPT = 2**28  # bytes of evidence and costs; of further videos they are computed whenever they are asked for

_LEAST_FOR_POOL = 16  # videos; for fewer, starting processes takes longer than it saves


@dataclass(frozen=True)
class Results:
    """An evaluation.

    Attributes
    ----------
    dataset : Dataset
        What was evaluated (with ``drop_unmapped``, without the steps removed).
    options : EvaluationOptions
    videos : tuple of Video
        The test videos, each once, in the order of the splits.
    methods : dict of str to MethodResult
        By name.
    tsorts : dict of FlowGraph to TSortGraph
        The procedures compiled.
    problems : tuple of str
        What was passed over.
    training : Training
    seconds : float
    workers : int
    """

    dataset: Dataset
    options: EvaluationOptions
    videos: tuple[Video, ...]
    methods: dict[str, MethodResult]
    tsorts: dict[FlowGraph, TSortGraph]
    problems: tuple[str, ...]
    training: Training
    seconds: float
    workers: int

    @property
    def common(self) -> list[int]:
        """The videos that every method with any video has."""
        covered = [method.metrics for method in self.methods.values() if method.metrics]
        return [at for at in range(len(self.videos)) if all(at in metrics for metrics in covered)]

    def only(self, member: Callable[[Video], bool]) -> Results:
        """Return the same results on some of the videos; the time is theirs by number."""
        kept = [at for at, video in enumerate(self.videos) if member(video)]
        place = {at: now for now, at in enumerate(kept)}
        methods = {}
        for name, method in self.methods.items():
            some = MethodResult(name)
            some.place(method, place)
            some.seconds = method.seconds * len(some.metrics) / max(len(method.metrics), 1)
            methods[name] = some
        return replace(self, videos=tuple(self.videos[at] for at in kept), methods=methods)

    def to_frame(self) -> DataFrame:
        """Return a table of pandas, with a row per video and method: video, task, split, method, metrics as shares."""
        rows = []
        for method in self.methods.values():
            for at, metrics in method.metrics.items():
                video = self.videos[at]
                split = None if video.split is None else video.split.name
                told = {"video": video.recording.id, "task": video.task.id, "split": split, "method": method.name}
                rows.append(told | metrics)
        return data_frame(rows)


def evaluate_dataset(
    dataset: Dataset,
    methods: Sequence[str] | None = None,
    options: EvaluationOptions | None = None,
    *,
    workers: int | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Evaluate methods side by side on the test videos of a dataset.

    The dataset is split as it says itself, or in folds (:attr:`EvaluationOptions.folds`). Every video in a test split
    is tested once, with what the training part of that split says (a video in several test splits: of the first of
    them). Without splits every video is tested, and nothing is learnt.

    Parameters
    ----------
    dataset : Dataset
    methods : sequence of str, optional
        Names as in :mod:`graph2vid.evaluate.methods`; ``graph`` stands for all graphs. All by default.
    options : EvaluationOptions, optional
    workers : int, optional
        Processes and threads; all processors by default. The results do not depend on it.
    skip_bad : bool
        Pass over videos that cannot be evaluated, and list them; otherwise the first of them is an error.
    progress : callable, optional

    Returns
    -------
    Results
    """
    given = vars(options or EvaluationOptions()) | {"workers": workers, "skip_bad": skip_bad}
    *_, results = evaluate_one_by_one(dataset, methods, ExperimentOptions(**given), progress or (lambda *_: None))
    return results


def evaluate_one_by_one(
    dataset: Dataset, methods: Sequence[str] | None, options: ExperimentOptions, tell: Progress
) -> Iterator[Results]:
    """Do what :func:`evaluate_dataset` does, and yield the results so far after each method."""
    started = perf_counter()
    check_preset(options)
    workers = options.workers or cpu_count()
    if options.drop_unmapped:
        dataset = without_unmapped(dataset)
    options = replace(
        options,
        folds=folds_of(options, dataset),  # as decided from the dataset's own splits
        extended=extended_of(options, dataset),
        tune_for=tuned_for(options, dataset),
    )
    if options.folds:
        dataset = replace(dataset, splits=in_folds(dataset, options.folds))
    is_open = dataset.name in OPEN
    training = Training(dataset, linear_of(options, dataset), options.min_support, options.tolerance, is_open)
    # Refuse wrong names before the work; of argmax+background it cannot be told yet.
    methods_of(dataset, training, methods, with_background=True)
    tested = list(_tested(dataset))
    if not tested:
        raise InputError(f"{dataset.name}: there are no videos to evaluate")
    problems = list(dataset.problems)
    videos: list[Video] = []
    kept, with_background = _Kept(dataset, options), False
    with _mapper(workers, len(tested), (dataset, options)) as each:
        prepared = each(_prepare, [recording for recording, _ in tested])
        for done, ((recording, split), found) in enumerate(zip(tested, prepared, strict=True), start=1):
            tell("evidence and costs", done, len(tested))
            if not isinstance(found, Graph2VidError):
                (evidence, costs), *truths = found
                kept.keep(recording, evidence, costs)
                with_background = with_background or evidence.background is not None
                videos.append(Video(recording, dataset.tasks[recording.task], split, kept, *truths))
            elif options.skip_bad:
                problems.append(str(found))
            else:
                raise found
        if not videos:
            raise InputError(f"{dataset.name}: none of the {len(tested)} videos can be evaluated; {problems[0]}")
        chosen = methods_of(dataset, training, methods, with_background=with_background)
        runner = MethodRunner(dataset, options, workers, each, tell)
        results = Results(dataset, options, tuple(videos), {}, runner.tsorts, tuple(problems), training, 0.0, workers)
        for name, result in runner.results(chosen, LearntCosts(training), videos):
            results = replace(results, methods=results.methods | {name: result}, seconds=perf_counter() - started)
            yield results


def in_folds(dataset: Dataset, folds: int) -> tuple[Split, ...]:
    """Deal the videos of each task into folds in turn, by their ids, and test on each what the others train."""
    dealt: list[list[str]] = [[] for _ in range(folds)]
    for name in dataset.tasks:
        of_task = sorted(recording.id for recording in dataset.recordings if recording.task == name)
        for place, fold in enumerate(dealt):
            fold += of_task[place::folds]
    return tuple(
        Split(f"fold {number}", tuple(video for other in dealt if other is not test for video in other), tuple(test))
        for number, test in enumerate(dealt, start=1)
        if test
    )


def without_unmapped(dataset: Dataset) -> Dataset:
    """Return the dataset without the steps of its procedures that no dataset step corresponds to.

    What stood before a removed step then stands before what stood after it. A procedure of which nothing would be
    left stays as it is.
    """
    kept: dict[str, tuple[int, ...]] = {}
    tasks = {}
    for name, task in dataset.tasks.items():
        mapped = sorted({instruction for instructions in task.correspondence for instruction in instructions})
        kept[name] = tuple(mapped or range(len(task.procedure)))
        place = {instruction: at for at, instruction in enumerate(kept[name])}
        gone = [step for step in range(len(task.procedure)) if step not in place]
        tasks[name] = replace(
            task,
            procedure=tuple(task.procedure[step] for step in place),
            correspondence=tuple(tuple(place[one] for one in of_step) for of_step in task.correspondence),
            flows={source: flow.without(gone) if gone else flow for source, flow in task.flows.items()},
            howto=None,
        )
    return replace(dataset, tasks=tasks, evidence=_KeptRows(dataset.evidence, kept))


@dataclass(frozen=True)
class _KeptRows:
    """Evidence for some of the steps only (a class, so that it can be handed to other processes)."""

    evidence: Callable[[Recording], Evidence]
    kept: dict[str, tuple[int, ...]]

    def __call__(self, recording: Recording) -> Evidence:
        found = self.evidence(recording)
        rows = list(self.kept[recording.task])
        skip = None if found.skip is None else found.skip[rows]
        return replace(found, similarity=found.similarity[rows], skip=skip)


def _tested(dataset: Dataset) -> Iterator[tuple[Recording, Split | None]]:
    waiting = {recording.id: recording for recording in dataset.recordings}
    for split in dataset.splits:
        for name in split.test:
            if name in waiting:
                yield waiting.pop(name), split
    for recording in () if dataset.splits else dataset.recordings:
        yield recording, None


_shared: tuple[Dataset, EvaluationOptions]
"""What is evaluated: sent to each process once, not with every video."""


def _share(dataset: Dataset, options: EvaluationOptions) -> None:
    global _shared
    _shared = (dataset, options)


def _prepare(recording: Recording) -> tuple[tuple[Evidence, Costs], Labels, Labels | None] | Graph2VidError:
    """Return a video's evidence, costs and true labels (of clips, and of frames), or what is wrong with it."""
    dataset, options = _shared
    frames = recording.notes.get("frames") if dataset.name in OPEN else None
    try:
        evidence = dataset.evidence(recording)
        costs = video_costs(dataset, options, recording, evidence)
        truth = true_labels(dataset, recording)
        return (evidence, costs), truth, None if frames is None else true_labels(dataset, recording, frames)
    except Graph2VidError as error:
        return InputError(f"video {recording.id}: {error}")


@dataclass
class _Kept:
    """Evidence and costs of videos: kept up to a limit of memory, else computed anew."""

    dataset: Dataset
    options: EvaluationOptions
    room: int = _MOST_KEPT
    found: dict[str, tuple[Evidence, Costs]] = field(default_factory=dict)
    last: tuple[str, tuple[Evidence, Costs]] | None = None

    def keep(self, recording: Recording, evidence: Evidence, costs: Costs) -> None:
        """Keep what was computed, if there is room."""
        self.room -= evidence.similarity.nbytes + costs.match.nbytes
        if self.room > 0:
            self.found[recording.id] = evidence, costs

    def __call__(self, recording: Recording) -> tuple[Evidence, Costs]:
        if recording.id in self.found:
            return self.found[recording.id]
        if self.last is None or self.last[0] != recording.id:
            evidence = self.dataset.evidence(recording)
            self.last = recording.id, (evidence, video_costs(self.dataset, self.options, recording, evidence))
        return self.last[1]


@contextmanager
def _mapper(workers: int, videos: int, shared: tuple[Dataset, EvaluationOptions]) -> Iterator[Mapper]:
    """Yield a ``map`` over all processors that keeps the order."""
    if workers == 1 or videos < _LEAST_FOR_POOL:
        _share(*shared)
        yield map
        return
    with worker_pool(workers, initializer=_share, initargs=shared) as pool:
        yield lambda function, items: pool.map(function, items, chunksize=max(1, min(8, len(items) // workers)))
