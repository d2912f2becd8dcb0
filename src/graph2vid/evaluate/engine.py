"""Run the methods over the test videos of a dataset, each video's costs computed once and shared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from graph2vid._processes import worker_pool
from graph2vid.alignment import align, align_many, posterior
from graph2vid.datasets.dataset import Dataset, Evidence, Recording, Split, Task
from graph2vid.errors import Graph2VidError, InputError, TooLargeError
from graph2vid.evaluate.labels import shared_classes
from graph2vid.evaluate.learnt_costs import GRID, LIKELIEST, Beyond
from graph2vid.evaluate.method_runs import Run
from graph2vid.evaluate.methods import (
    Absent,
    Labels,
    Method,
    Plan,
    Training,
    Video,
    available_methods,
    choose_methods,
    true_labels,
)
from graph2vid.evaluate.metrics import evaluate_video
from graph2vid.evaluate.nested import Weights, nested_run
from graph2vid.evidence import Costs, costs_from_arrays
from graph2vid.evidence.costs import COSINE_TEMPERATURE, PRESETS
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

NOT_EXACT = "not exact"
DEFAULT_LIMIT = 2**18
"""Ideals up to which a procedure is grounded exactly: those of a bag of 18 steps."""

TRAINED_ORDER = frozenset({"salads50", "captaincook4d"})
"""Datasets that list their steps in no particular order: ``linear`` follows the training videos there."""

OWN_SPLITS = frozenset({"salads50"})
"""Datasets whose own splits are the custom; of the others every video is judged, in folds."""

FOLDS = 5

_LEAST_FOR_POOL = 16  # videos; for fewer, starting processes takes longer than it saves

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as (what is done, done, total)."""

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A ``map`` over processors that keeps the order."""


@dataclass(frozen=True)
class Options:
    """How videos are evaluated; the same for every method.

    Attributes
    ----------
    preset : str or None
        Match and drop policies: a name in :data:`graph2vid.evidence.PRESETS`; None: ``log_odds`` for evidence of that
        kind (narration), else ``paper``.
    temperature : float or None
        What similarities are divided by; None: the preset's, else 1 for scores and 0.1 for cosines.
    drop : str or None
        A drop policy in place of the preset's.
    skip : str or None
        A skip policy; None: as the evidence says (narration), else every step must appear.
    contiguous : bool
        Whether a step is one unbroken run of clips.
    linear : {"auto", "listed", "mean-position"}
        The order of ``linear``: as listed, or by the mean position in the training split; auto: mean position for
        the datasets in :data:`TRAINED_ORDER`, else as listed.
    min_support, tolerance
        Of mined graphs (:meth:`FlowGraph.mine`).
    folds : int or None
        0: the dataset's own splits. N > 1: the videos of each task are dealt into N folds, and each is judged with
        what the others say. None: the own splits of the datasets in :data:`OWN_SPLITS`, if they have any, else 5 folds.
    limit : int
        The largest number of ideals; a procedure beyond it is "not exact" and left out.
    drop_unmapped : bool
        Whether steps of a procedure without a counterpart among the dataset's steps are removed first.
    beyond : tuple of str
        Features (:mod:`graph2vid.evaluate.learnt_costs`) with which the methods of graphs are run once more each.
    tune_for : tuple of str
        The measures by whose mean the weights of their prices are chosen, on training videos.
    """

    preset: str | None = None
    temperature: float | None = None
    drop: str | None = None
    skip: str | None = None
    contiguous: bool = True
    linear: str = "auto"
    min_support: int = 5
    tolerance: float = 0.0
    folds: int | None = None
    limit: int = DEFAULT_LIMIT
    drop_unmapped: bool = False
    beyond: tuple[str, ...] = ()
    tune_for: tuple[str, ...] = ("acc", "iou_strict")

    def __post_init__(self) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise InputError(f"unknown preset {self.preset!r}; known: {', '.join(sorted(PRESETS))}")
        if self.folds is not None and (self.folds < 0 or self.folds == 1):
            raise InputError(f"the number of folds is 0 (the dataset's own splits) or at least 2, not {self.folds}")
        if self.linear not in ("auto", "listed", "mean-position"):
            raise InputError(f"the linear order is auto, listed or mean-position, not {self.linear!r}")
        if not self.contiguous and (asked := [one for one in self.beyond if LIKELIEST in one.split("+")]):
            raise InputError(f"max-marginal decoding ({asked[0]}) is of contiguous alignments: leave one of them out")

    def folds_of(self, dataset: Dataset) -> int:
        """Return how many folds hold for a dataset; 0: its own splits."""
        if self.folds is not None:
            return self.folds
        return 0 if dataset.name in OWN_SPLITS and dataset.splits else FOLDS

    def preset_of(self, evidence: Evidence) -> str:
        """Return which preset holds for a video's evidence."""
        return self.preset or ("log_odds" if evidence.kind == "log_odds" else "paper")

    def linear_of(self, dataset: Dataset) -> str:
        """Return which linear order holds for a dataset."""
        if self.linear != "auto":
            return self.linear
        return "mean-position" if dataset.name in TRAINED_ORDER else "listed"


@dataclass(frozen=True)
class Results:
    """An evaluation.

    Attributes
    ----------
    dataset : Dataset
        What was evaluated (with ``drop_unmapped``, without the steps removed).
    options : Options
    videos : tuple of Video
        The test videos, each once, in the order of the splits.
    runs : dict of str to Run
        By method.
    tsorts : dict of FlowGraph to TSortGraph
        The procedures compiled.
    problems : tuple of str
        What was passed over.
    training : Training
    seconds : float
    workers : int
    """

    dataset: Dataset
    options: Options
    videos: tuple[Video, ...]
    runs: dict[str, Run]
    tsorts: dict[FlowGraph, TSortGraph]
    problems: tuple[str, ...]
    training: Training
    seconds: float
    workers: int

    @property
    def common(self) -> list[int]:
        """The videos that every method with any video has."""
        covered = [run.measures for run in self.runs.values() if run.measures]
        return [at for at in range(len(self.videos)) if all(at in measures for measures in covered)]

    def only(self, member: Callable[[Video], bool]) -> Results:
        """Return the same results on some of the videos; the time is theirs by number."""
        kept = [at for at, video in enumerate(self.videos) if member(video)]
        place = {at: now for now, at in enumerate(kept)}
        runs = {}
        for name, run in self.runs.items():
            some = Run(name)
            for what in ("labels", "measures", "absent", "plans"):
                of_video = getattr(run, what)
                setattr(some, what, {place[at]: of_video[at] for at in of_video if at in place})
            some.seconds = run.seconds * len(some.measures) / max(len(run.measures), 1)
            runs[name] = some
        return replace(self, videos=tuple(self.videos[at] for at in kept), runs=runs)


def evaluate_dataset(
    dataset: Dataset,
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    *,
    workers: int | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
    interrupted: Callable[[Results], None] | None = None,
) -> Results:
    """Evaluate methods side by side on the test videos of a dataset.

    The dataset is split as it says itself, or in folds (:attr:`Options.folds`). Every video in a test split is judged
    once, with what the training part of that split says (a video in several test splits: of the first of them).
    Without splits every video is judged, and nothing is learnt.

    Parameters
    ----------
    dataset : Dataset
    methods : sequence of str, optional
        Names as in :mod:`graph2vid.evaluate.methods`; ``graph`` stands for all graphs. All by default.
    options : Options, optional
    workers : int, optional
        Processes and threads; all processors by default. The results do not depend on it.
    skip_bad : bool
        Pass over videos that cannot be evaluated, and list them; otherwise the first of them is an error.
    progress : callable, optional
    interrupted : callable, optional
        Called with the methods that are done, if there are any, when the run is interrupted (Ctrl+C, SIGTERM); the
        interrupt goes on afterwards.

    Returns
    -------
    Results
    """
    started = perf_counter()
    options = options or Options()
    workers = _check_workers(workers)
    if options.drop_unmapped:
        dataset = without_unmapped(dataset)
    options = replace(options, folds=options.folds_of(dataset))  # as decided from the dataset's own splits
    if options.folds:
        dataset = replace(dataset, splits=in_folds(dataset, options.folds))
    training = Training(dataset, options.linear_of(dataset), options.min_support, options.tolerance)
    if methods is not None:  # refuse wrong names before the work; of argmax+background it cannot be told yet
        choose_methods(available_methods(dataset, training, with_background=True), methods)
    judged = list(_judged(dataset))
    if not judged:
        raise InputError(f"{dataset.name}: there are no videos to evaluate")
    problems = list(dataset.problems)
    videos: list[Video] = []
    tell = progress or (lambda *_: None)
    tsorts: dict[FlowGraph, TSortGraph] = {}
    runs: dict[str, Run] = {}

    def results() -> Results:
        seconds = perf_counter() - started
        return Results(dataset, options, tuple(videos), dict(runs), tsorts, tuple(problems), training, seconds, workers)

    try:
        with _mapper(workers, len(judged), (dataset, options)) as each:
            prepared = each(_prepare, [recording for recording, _ in judged])
            for done, ((recording, split), found) in enumerate(zip(judged, prepared, strict=True), start=1):
                tell("evidence and costs", done, len(judged))
                if not isinstance(found, Graph2VidError):
                    videos.append(Video(recording, dataset.tasks[recording.task], split, *found))
                elif skip_bad:
                    problems.append(str(found))
                else:
                    raise found
            if not videos:
                raise InputError(f"{dataset.name}: none of the {len(judged)} videos can be evaluated; {problems[0]}")
            known = available_methods(
                dataset, training, with_background=any(video.evidence.background is not None for video in videos)
            )

            def run(name: str, method: Method, some: Sequence[Video]) -> Run:
                return _run(name, method, some, options, tsorts, workers, each, tell)

            beyond = Beyond(dataset, training)

            def run_beyond(plain: Method, name: str, weights: Weights, some: Sequence[Video]) -> Run:
                return run(name, beyond.method(plain, weights), some)

            for name, method in choose_methods(known, methods).items():
                runs[name] = run(name, method, videos)
                for features in options.beyond if name.startswith("graph:") else ():
                    runs[f"{name}+{features}"] = nested_run(
                        f"{name}+{features}",
                        {feature: GRID[feature] for feature in features.split("+")},
                        partial(run_beyond, method),
                        videos,
                        options.tune_for,
                    )
    except (KeyboardInterrupt, SystemExit):
        if interrupted is not None and runs:
            interrupted(results())
        raise
    return results()


def in_folds(dataset: Dataset, folds: int) -> tuple[Split, ...]:
    """Deal the videos of each task into folds in turn, by their ids, and test on each what the others train."""
    dealt: list[list[str]] = [[] for _ in range(folds)]
    for name in dataset.tasks:
        of_task = sorted(recording.id for recording in dataset.recordings if recording.task == name)
        for place, video in enumerate(of_task):
            dealt[place % folds].append(video)
    return tuple(
        Split(
            f"fold {number}",
            tuple(video for other in dealt if other is not test for video in other),
            tuple(test),
        )
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
        keep = tuple(mapped) if mapped else tuple(range(len(task.procedure)))
        place = {instruction: at for at, instruction in enumerate(keep)}
        gone = [step for step in range(len(task.procedure)) if step not in place]
        kept[name] = keep
        tasks[name] = Task(
            task.id,
            task.title,
            task.steps,
            tuple(task.procedure[step] for step in keep),
            tuple(tuple(place[instruction] for instruction in of_step) for of_step in task.correspondence),
            {source: flow.without(gone) if gone else flow for source, flow in task.flows.items()},
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


def _judged(dataset: Dataset) -> Iterator[tuple[Recording, Split | None]]:
    by_id = {recording.id: recording for recording in dataset.recordings}
    if not dataset.splits:
        for recording in dataset.recordings:
            yield recording, None
        return
    seen = set()
    for split in dataset.splits:
        for name in split.test:
            if name in by_id and name not in seen:
                seen.add(name)
                yield by_id[name], split


_shared: tuple[Dataset, Options]
"""What is evaluated: sent to each process once, not with every video."""


def _share(dataset: Dataset, options: Options) -> None:
    global _shared
    _shared = (dataset, options)


def _prepare(recording: Recording) -> tuple[Evidence, Costs, Labels] | Graph2VidError:
    """Return a video's evidence, costs and true labels, or what is wrong with it."""
    dataset, options = _shared
    task = dataset.tasks[recording.task]
    try:
        evidence = dataset.evidence(recording)
        n_steps, n_clips = len(task.procedure), recording.n_clips
        if evidence.similarity.shape != (n_steps, n_clips):
            raise InputError(
                f"the evidence has shape {evidence.similarity.shape}, but the procedure has {n_steps} steps and the "
                f"video {n_clips} clips"
            )
        skip = evidence.skip if options.skip is None else options.skip
        if skip is None and n_clips < n_steps:
            raise InputError(
                f"{n_clips} clips cannot show {n_steps} steps, each of which must appear (--skip-steps lets them be "
                "left out)"
            )
        temperature, preset = options.temperature, options.preset_of(evidence)
        if temperature is None and evidence.kind == "cosine" and "temperature" not in PRESETS[preset]:
            temperature = COSINE_TEMPERATURE
        costs = costs_from_arrays(
            scores=evidence.similarity,
            preset=preset,
            temperature=temperature,
            drop=options.drop,
            skip=skip,
        )
        return evidence, costs, true_labels(dataset, recording)
    except Graph2VidError as error:
        return InputError(f"video {recording.id}: {error}")


def _run(
    name: str,
    method: Method,
    videos: Sequence[Video],
    options: Options,
    tsorts: dict[FlowGraph, TSortGraph],
    workers: int,
    each: Mapper,
    tell: Progress,
) -> Run:
    """Run one method on videos, and measure what it does."""
    run = Run(name)
    began = perf_counter()
    for at, video in enumerate(videos):
        found = method(video)
        if isinstance(found, Absent):
            run.absent[at] = found.reason
        elif isinstance(found, Plan):
            run.plans[at] = found
        else:
            run.labels[at] = found
    _align(run, videos, options, tsorts, workers, partial(tell, name))
    run.seconds = perf_counter() - began
    members = sorted(run.labels)
    asked = [
        (run.labels[at], videos[at].truth, videos[at].task.correspondence, len(videos[at].task.procedure))
        for at in members
    ]
    for done, (at, measures) in enumerate(zip(members, each(_measure, asked), strict=True), start=1):
        run.measures[at] = measures
        tell(f"{name}: measures", done, len(members))
    run.labels = {at: run.labels[at] for at in members}
    return run


def _align(
    run: Run,
    videos: Sequence[Video],
    options: Options,
    tsorts: dict[FlowGraph, TSortGraph],
    workers: int,
    tell: Callable[[int, int], None],
) -> None:
    """Align the plans of a method with their videos, and move those beyond the limit to ``absent``."""
    for flow in {plan.flow: None for plan in run.plans.values() if not plan.is_beyond}:
        if flow not in tsorts:
            try:
                tsorts[flow] = TSortGraph.compile(flow, options.limit)
            except TooLargeError:
                continue
    for at, plan in list(run.plans.items()):
        if plan.flow not in tsorts and not plan.is_beyond:
            run.absent[at] = NOT_EXACT
    members = [at for at in run.plans if at not in run.absent]
    asked = [
        (
            plan.flow if plan.is_beyond else tsorts[plan.flow],
            _match(plan, costs),
            costs.drop,
            _skip(plan, costs),
            plan.repeat,
            plan.durations,
        )
        for plan, costs in ((run.plans[at], videos[at].costs) for at in members)
    ]
    breaking = max((run.plans[at].breaking for at in members), default=1.0)
    likeliest = any(run.plans[at].likeliest for at in members)
    for at, labels in zip(members, _labels(asked, options, breaking, likeliest, workers, tell), strict=True):
        if labels is None:
            run.absent[at] = NOT_EXACT
        else:
            run.labels[at] = np.append(run.plans[at].rows, -1)[labels]  # label -1 reads the last entry


def _match(plan: Plan, costs: Costs) -> Any:
    match = np.ascontiguousarray(costs.match[plan.rows])
    return match if plan.clip is None else match + plan.clip[:, None]


def _skip(plan: Plan, costs: Costs) -> Any:
    if plan.skip is not None:
        return plan.skip
    return None if costs.skip is None else np.ascontiguousarray(costs.skip[plan.rows])


def _labels(
    asked: list[tuple[FlowGraph | TSortGraph, Any, Any, Any, Any, Any]],
    options: Options,
    breaking: float,
    likeliest: bool,
    workers: int,
    tell: Callable[[int, int], None],
) -> Iterator[Labels | None]:
    if not asked:
        return
    flows, matches, drops, skips, repeats, durations = zip(*asked, strict=True)
    if likeliest:
        for done, (flow, match, drop, skip, repeat, lengths) in enumerate(asked, start=1):
            found = posterior(flow, match, drop, skip, repeat=repeat, durations=lengths, violation=breaking)
            labels = found.probability.argmax(axis=0)
            yield np.where(labels == len(match), -1, labels)
            tell(done, len(asked))
        return
    try:
        aligned = align_many(
            flows,
            matches,
            drops,
            skips,
            options.contiguous,
            repeats=repeats,
            durations=durations,
            violation=breaking,
            workers=workers,
            progress=tell,
        )
    except TooLargeError:  # of some video alone the table does not fit
        for done, (flow, match, drop, skip, repeat, lengths) in enumerate(asked, start=1):
            tell(done, len(asked))
            extras = {"repeat": repeat, "durations": lengths, "violation": breaking}
            try:
                yield align(flow, match, drop, skip, options.contiguous, workers=workers, **extras).labels
            except TooLargeError:
                yield None
        return
    for alignment in aligned:
        yield alignment.labels


def _measure(asked: tuple[Labels, Labels, tuple[tuple[int, ...], ...], int]) -> dict[str, float]:
    labels, truth, correspondence, n_instructions = asked
    true_classes, predicted_classes = shared_classes(correspondence, n_instructions)
    return evaluate_video(labels, truth, predicted_classes=predicted_classes, true_classes=true_classes)


def _check_workers(workers: int | None) -> int:
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers < 1:
        raise InputError(f"at least one worker is needed, not {workers}")
    return workers


@contextmanager
def _mapper(workers: int, videos: int, shared: tuple[Dataset, Options]) -> Iterator[Mapper]:
    """Yield a ``map`` over all processors that keeps the order."""
    if workers == 1 or videos < _LEAST_FOR_POOL:
        _share(*shared)
        yield map
        return
    with worker_pool(workers, initializer=_share, initargs=shared) as pool:
        yield lambda function, items: pool.map(function, items, chunksize=max(1, min(8, len(items) // workers)))
