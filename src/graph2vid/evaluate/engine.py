"""Run the methods over the test videos of a dataset, each video's costs computed once and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from graph2vid._evaluation_options import EvaluationOptions, ExperimentOptions
from graph2vid._processes import cpu_count, worker_pool
from graph2vid.alignment import Problem, align_many
from graph2vid.datasets import Dataset, Evidence, Recording, Split
from graph2vid.errors import Graph2VidError, InputError, TooLargeError
from graph2vid.evaluate.adapted import adapted_results
from graph2vid.evaluate.extended import GRID, LearntCosts, Weights, nested_result
from graph2vid.evaluate.labels import Labels, shared_classes
from graph2vid.evaluate.methods import Absent, Method, MethodResult, Plan, Training, Video, methods_of, true_labels
from graph2vid.evaluate.metrics import OVERLAPS, evaluate_video, f1_counts
from graph2vid.evidence import COSINE_TEMPERATURE, PRESETS, SCORE_TEMPERATURE, Costs, costs_from_arrays
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

NOT_EXACT = "not exact"
TRAINED_ORDER = frozenset({"salads50", "framewise", "captaincook4d"})
"""Datasets that list their steps in no particular order: ``linear`` follows the training videos there."""

OWN_SPLITS = frozenset({"salads50", "framewise"})
"""Datasets whose own splits are the custom; of the others every video is tested, in folds."""

OPEN = frozenset({"framewise"})
"""Datasets whose tasks have classes in place of a procedure: those that training videos show are grounded."""

FOLDS = 5

_OFTEN_REPEATED = 0.2  # of the segments; where steps are repeated less, repeats are evaluated if asked for
_MOST_KEPT = 2**28  # bytes of evidence and costs; of further videos they are computed whenever they are asked for
_MOST_ALIGNED = 2**23  # match costs of videos that are aligned side by side

_LEAST_FOR_POOL = 16  # videos; for fewer, starting processes takes longer than it saves

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as (what is done, done, total)."""

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A ``map`` over processors that keeps the order."""


def folds_of(options: EvaluationOptions, dataset: Dataset) -> int:
    """Return how many folds hold for a dataset; 0: its own splits."""
    if options.folds is not None:
        return options.folds
    return 0 if dataset.name in OWN_SPLITS and dataset.splits else FOLDS


def preset_of(options: EvaluationOptions, evidence: Evidence) -> str:
    """Return which preset holds for a video's evidence."""
    return options.preset or ("log_odds" if evidence.kind == "log_odds" else "paper")


def extended_of(options: EvaluationOptions, dataset: Dataset) -> tuple[str, ...]:
    """Return with which features of the extended model the graphs of a dataset are evaluated once more."""
    if options.extended is not None:
        return options.extended
    if dataset.name not in OPEN or not options.contiguous:
        return ()
    shown = sum(len(recording.annotations) for recording in dataset.recordings)
    repeated = shown - sum(len(recording.order) for recording in dataset.recordings)
    return ("durations", "durations+repeat") if repeated > _OFTEN_REPEATED * shown else ("durations",)


def tuned_for(options: EvaluationOptions, dataset: Dataset) -> tuple[str, ...]:
    """Return the metrics by which weights are chosen."""
    return options.tune_for or (("mof", "edit", "f1@50") if dataset.name in OPEN else ("acc", "iou_strict"))


def linear_of(options: EvaluationOptions, dataset: Dataset) -> str:
    """Return which linear order holds for a dataset."""
    if options.linear != "auto":
        return options.linear
    return "mean-position" if dataset.name in TRAINED_ORDER else "listed"


def check_preset(options: EvaluationOptions) -> None:
    """Refuse a preset that is not known."""
    if options.preset is not None and options.preset not in PRESETS:
        raise InputError(f"unknown preset {options.preset!r}; known: {', '.join(sorted(PRESETS))}")


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
        runner = _Runner(dataset, options, workers, each, tell)
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
        costs = _costs(dataset, options, recording, evidence)
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
            self.last = recording.id, (evidence, _costs(self.dataset, self.options, recording, evidence))
        return self.last[1]


def _costs(
    dataset: Dataset, options: EvaluationOptions, recording: Recording, evidence: Evidence, plan: Plan | None = None
) -> Costs:
    """Return the costs of a video, as a plan asks for them."""
    task = dataset.tasks[recording.task]
    n_steps, n_clips = len(task.procedure), recording.n_clips
    if evidence.similarity.shape != (n_steps, n_clips):
        raise InputError(
            f"the evidence has shape {evidence.similarity.shape}, but the procedure has {n_steps} steps and the "
            f"video {n_clips} clips"
        )
    skip = evidence.skip if options.skip is None else options.skip
    if skip is None and n_clips < n_steps and dataset.name not in OPEN:
        raise InputError(
            f"{n_clips} clips cannot show {n_steps} steps, each of which must appear (--skip lets them be left out)"
        )
    temperature, preset = options.temperature, preset_of(options, evidence)
    if temperature is None and evidence.kind == "cosine" and "temperature" not in PRESETS[preset]:
        temperature = COSINE_TEMPERATURE
    if plan is not None and plan.temperature != 1.0:
        usual = temperature or float(PRESETS[preset].get("temperature", SCORE_TEMPERATURE))
        temperature = plan.temperature * usual
    return costs_from_arrays(
        scores=evidence.similarity,
        preset=preset,
        match=None if plan is None else plan.match,
        temperature=temperature,
        drop=options.drop,
        skip=skip,
    )


@dataclass
class _Runner:
    """Runs methods over videos; every procedure is compiled once for all of them."""

    dataset: Dataset
    options: EvaluationOptions
    workers: int
    each: Mapper
    tell: Progress
    tsorts: dict[FlowGraph, TSortGraph] = field(default_factory=dict)

    def results(
        self, methods: Mapping[str, Method], costs: LearntCosts, videos: Sequence[Video]
    ) -> Iterator[tuple[str, MethodResult]]:
        """Yield what each method did; after a graph, what it did with each feature of the extended model."""
        for name, method in methods.items():
            yield name, self.run(name, method, videos)
            if not name.startswith("graph:"):
                continue
            yield from adapted_results(name, method, videos, costs, self)
            for features in self.options.extended or ():

                def run(title: str, weights: Weights, some: Sequence[Video], method: Method = method) -> MethodResult:
                    return self.run(title, costs.method(method, weights), some)

                title, grid = f"{name}+{features}", {feature: GRID[feature] for feature in features.split("+")}
                yield title, nested_result(title, grid, run, videos, self.options.tune_for or ())

    def run(self, name: str, method: Method, videos: Sequence[Video]) -> MethodResult:
        """Run one method on videos, and compute its metrics."""
        result = MethodResult(name)
        began = perf_counter()
        for at, video in enumerate(videos):
            found = method(video)
            if isinstance(found, Absent):
                result.absent[at] = found.reason
            elif isinstance(found, Plan):
                # The release grounds one order by Drop-DTW, whose costs are others than those of graphs.
                is_order = self.options.preset == "released" and name.startswith(("linear", "true-order"))
                result.plans[at] = replace(found, match="likelihood_bg") if is_order else found
            else:
                result.labels[at] = found
        self._align(result, videos)
        result.seconds = perf_counter() - began
        result.labels = dict(sorted(result.labels.items()))
        tasks = {at: videos[at].task for at in result.labels}
        asked = [
            (
                videos[at].on_frames(labels),
                videos[at].scored,
                tasks[at].correspondence,
                len(tasks[at].procedure),
                counted,
            )
            for at, labels in result.labels.items()
            for counted in (videos[at].recording.notes.get("background_counts"),)
        ]
        for done, (at, metrics) in enumerate(zip(tasks, self.each(_metrics, asked), strict=True), start=1):
            result.metrics[at] = metrics
            self.tell(f"{name}: metrics", done, len(tasks))
        result.labels = {at: videos[at].on_clips(labels) for at, labels in result.labels.items()}
        return result

    def _align(self, result: MethodResult, videos: Sequence[Video]) -> None:
        """Align the plans of a method with their videos, and move those beyond the limit to ``absent``."""
        plain = {at: plan.flow for at, plan in result.plans.items() if not plan.is_extended}
        for flow in dict.fromkeys(plain.values()):
            if flow not in self.tsorts:
                with suppress(TooLargeError):
                    self.tsorts[flow] = TSortGraph.compile(flow, self.options.limit)
        result.absent |= {at: NOT_EXACT for at, flow in plain.items() if flow not in self.tsorts}
        members = [at for at in result.plans if at not in result.absent]
        for some in _side_by_side(members, result, videos):
            pairs = [(result.plans[at], self._costs(result.plans[at], videos[at])) for at in some]
            for at, labels in zip(some, self._labels(result.name, pairs), strict=True):
                if labels is None:
                    result.absent[at] = NOT_EXACT
                else:
                    result.labels[at] = np.append(result.plans[at].rows, -1)[labels]  # label -1 reads the last entry

    def _costs(self, plan: Plan, video: Video) -> Costs:
        if plan.temperature == 1.0 and plan.match is None:
            return video.costs
        return _costs(self.dataset, self.options, video.recording, video.evidence, plan)

    def _labels(self, name: str, pairs: Sequence[tuple[Plan, Costs]]) -> Iterator[Labels | None]:
        """Yield the labels of each plan in its elements; None where its table does not fit."""
        if not pairs:
            return
        flows = [plan.flow if plan.is_extended else self.tsorts[plan.flow] for plan, _ in pairs]
        rows = [(match_costs(plan, costs), costs.drop, skip_costs(plan, costs)) for plan, costs in pairs]
        plans, contiguous = [plan for plan, _ in pairs], self.options.contiguous
        violation = max(plan.violation for plan in plans)
        if not any(plan.max_marginal for plan in plans):
            extras: dict[str, Any] = {"durations": [plan.durations for plan in plans], "violation": violation}
            extras |= {"repeats": [plan.repeat for plan in plans], "workers": self.workers}
            with suppress(TooLargeError):  # of some video alone the table may not fit
                matches, drops, skips = zip(*rows, strict=True)
                tell = partial(self.tell, name)
                aligned = align_many(flows, matches, drops, skips, contiguous, progress=tell, **extras)
                yield from (alignment.labels for alignment in aligned)
                return
        for done, (plan, flow, row) in enumerate(zip(plans, flows, rows, strict=True), start=1):
            self.tell(name, done, len(plans))
            extras = {"repeat": plan.repeat, "durations": plan.durations, "violation": violation}
            problem = Problem(flow, *row, contiguous=contiguous, **extras)
            if plan.max_marginal:
                labels = problem.posterior().probability.argmax(axis=0)
                yield np.where(labels == len(row[0]), -1, labels)
                continue
            try:
                yield problem.align(workers=self.workers).labels
            except TooLargeError:
                yield None


def _side_by_side(members: Sequence[int], result: MethodResult, videos: Sequence[Video]) -> Iterator[list[int]]:
    """Part videos into those that are aligned at once, so that their costs take bounded memory."""
    some: list[int] = []
    room = _MOST_ALIGNED
    for at in members:
        size = len(result.plans[at].rows) * videos[at].recording.n_clips
        if some and size > room:
            yield some
            some, room = [], _MOST_ALIGNED
        some.append(at)
        room -= size
    if some:
        yield some


def match_costs(plan: Plan, costs: Costs) -> Any:
    """Return the match costs of the elements of a plan, [E, N]."""
    match = np.ascontiguousarray(costs.match[plan.rows])
    return match if plan.clip is None else match + plan.clip[:, None]


def skip_costs(plan: Plan, costs: Costs) -> Any:
    """Return the skip costs of the elements of a plan, [E]; None: every one must appear."""
    if plan.skip is not None:
        return plan.skip
    return None if costs.skip is None else np.ascontiguousarray(costs.skip[plan.rows])


def _metrics(asked: tuple[Labels, Labels, tuple[tuple[int, ...], ...], int, bool | None]) -> dict[str, float]:
    labels, truth, correspondence, n_instructions, counted = asked
    true_classes, predicted_classes = shared_classes(correspondence, n_instructions)
    found = evaluate_video(labels, truth, predicted_classes=predicted_classes, true_classes=true_classes)
    if counted is None:
        return found
    found["frames"] = len(truth)
    if counted:  # segments of background are segments like others
        labels, truth = (np.where(one < 0, n_instructions, one) for one in (labels, truth))
        of_all = evaluate_video(labels, truth)
        found |= {name: of_all[name] for name in found if name.startswith(("edit", "f1"))}
    for overlap in OVERLAPS:
        counts = zip(("right", "wrong", "missed"), f1_counts(labels, truth, overlap), strict=True)
        found |= {f"{kind} f1@{round(100 * overlap)}": count for kind, count in counts}
    return found


@contextmanager
def _mapper(workers: int, videos: int, shared: tuple[Dataset, EvaluationOptions]) -> Iterator[Mapper]:
    """Yield a ``map`` over all processors that keeps the order."""
    if workers == 1 or videos < _LEAST_FOR_POOL:
        _share(*shared)
        yield map
        return
    with worker_pool(workers, initializer=_share, initargs=shared) as pool:
        yield lambda function, items: pool.map(function, items, chunksize=max(1, min(8, len(items) // workers)))
