"""One method over videos: its plans aligned with their costs, side by side, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from graph2vid._evaluation_options import EvaluationOptions
from graph2vid.alignment import Problem, align_many
from graph2vid.datasets import Dataset, Evidence, Recording
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evaluate.adapted import adapted_results
from graph2vid.evaluate.dataset_defaults import OPEN, preset_of
from graph2vid.evaluate.extended import GRID, LearntCosts, Weights, nested_result
from graph2vid.evaluate.labels import Labels, shared_classes
from graph2vid.evaluate.methods import Absent, Method, MethodResult, Plan, Video
from graph2vid.evaluate.metrics import OVERLAPS, evaluate_video, f1_counts
from graph2vid.evidence import COSINE_TEMPERATURE, PRESETS, SCORE_TEMPERATURE, Costs, costs_from_arrays
from graph2vid.flow import FlowGraph
from graph2vid.grounding import free_hidden
from graph2vid.tsort import TSortGraph

NOT_EXACT = "not exact"
BY_BACKGROUND = ("prototype", "relative")
"""Drop policies that take the scores of background, where the evidence has them."""
_MOST_ALIGNED = 2**23  # match costs of videos that are aligned side by side

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as (what is done, done, total)."""

Mapper: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A ``map`` over processors that keeps the order."""


def video_costs(
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
    drop: Any = options.drop
    if drop in BY_BACKGROUND:
        if evidence.background is None:
            raise InputError(f"drop {drop!r} needs scores of background, which this evidence has not")
        drop = drop, evidence.background
    return costs_from_arrays(
        scores=evidence.similarity,
        preset=preset,
        match=None if plan is None else plan.match,
        temperature=temperature,
        drop=drop,
        skip=skip,
    )


@dataclass
class MethodRunner:
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
            if flow not in self.tsorts and not flow.confidences:
                with suppress(TooLargeError):
                    self.tsorts[flow] = TSortGraph.compile(flow, self.options.limit)
        result.absent |= {
            at: NOT_EXACT for at, flow in plain.items() if flow not in self.tsorts and not flow.confidences
        }
        members = [at for at in result.plans if at not in result.absent]
        for violation in sorted({result.plans[at].violation for at in members}):
            alike = [at for at in members if result.plans[at].violation == violation]
            for some in _side_by_side(alike, result, videos):
                pairs = [(result.plans[at], self._costs(result.plans[at], videos[at])) for at in some]
                for at, labels in zip(some, self._labels(result.name, pairs), strict=True):
                    if labels is None:
                        result.absent[at] = NOT_EXACT
                    else:
                        result.labels[at] = np.append(result.plans[at].rows, -1)[labels]  # -1 reads the last entry

    def _costs(self, plan: Plan, video: Video) -> Costs:
        if plan.temperature == 1.0 and plan.match is None:
            return video.costs
        return video_costs(self.dataset, self.options, video.recording, video.evidence, plan)

    def _labels(self, name: str, pairs: Sequence[tuple[Plan, Costs]]) -> Iterator[Labels | None]:
        """Yield the labels of each plan in its elements; None where its table does not fit."""
        if not pairs:
            return
        flows = [plan.flow if plan.is_extended else self.tsorts.get(plan.flow, plan.flow) for plan, _ in pairs]
        rows = [(match_costs(plan, costs), costs.drop, skip_costs(plan, costs)) for plan, costs in pairs]
        plans, contiguous = [plan for plan, _ in pairs], self.options.contiguous
        violation = plans[0].violation
        if not any(plan.max_marginal for plan in plans):
            extras: dict[str, Any] = {"durations": [plan.durations for plan in plans], "violation": violation}
            extras |= {"repeats": [plan.repeat for plan in plans], "workers": self.workers}
            with suppress(TooLargeError):  # of some video alone the table may not fit
                matches, drops, skips = zip(*rows, strict=True)
                tell = partial(self.tell, name)
                aligned = align_many(flows, matches, drops, skips, contiguous, progress=tell, **extras)
                for plan, flow, row, alignment in zip(plans, flows, rows, aligned, strict=True):
                    if plan.flow.confidences and not plan.is_extended:
                        problem = Problem(flow, *row, violation=violation, contiguous=contiguous)
                        yield free_hidden(problem, alignment)[1].labels
                    else:
                        yield alignment.labels
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
