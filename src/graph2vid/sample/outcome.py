"""Grounding the bundled samples, and how far from the truth that comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graph2vid.evaluate import evaluate_video, labels_from_annotations
from graph2vid.evidence import Transcript
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.sample.load import Sample
from graph2vid.sample.narrated import Narrated
from graph2vid.sample.silent import Silent

# The policies that the scores are grounded with; they suit these scores, and say nothing about other videos.
POLICIES = {"match": "raw", "drop": "percentile:20", "skip": "percentile"}

NEAR = 2.0
"""Seconds within which a step counts as found."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one way of grounding made of a sample.

    Attributes
    ----------
    method : str
        ``"graph"`` (any legal order) or ``"linear"`` (the order as written).
    grounding : Grounding
        The result.
    truth : mapping of int to (float, float)
        Start and end in seconds of every step that the video shows.
    metrics : dict of str to float
        The metrics of `graph2vid.evaluate.evaluate_video`.
    """

    method: str
    grounding: Grounding
    truth: Mapping[int, tuple[float, float]]
    metrics: dict[str, float]

    def span(self, step: int) -> tuple[float, float] | None:
        """Return where the step was found, in seconds; None if it was said to be not shown."""
        found = self.grounding.segments_of(step)
        return (found[0].start, found[-1].end) if found else None

    def distance(self, step: int) -> float | None:
        """Return by how many seconds the start is off; None where it is missing here or in truth."""
        found, true = self.span(step), self.truth.get(step)
        return None if found is None or true is None else abs(found[0] - true[0])

    @property
    def near(self) -> int:
        """How many steps of the video begin within :data:`NEAR` seconds of the truth."""
        return sum((off := self.distance(step)) is not None and off <= NEAR for step in self.truth)


def ground_sample(sample: Sample) -> tuple[Outcome, ...]:
    """Ground the scores in any legal order, and in the order as written."""
    given: dict[str, Any] = {"scores": sample.scores, "clip_seconds": sample.clip_seconds, **POLICIES}
    return _both_ways(sample.flow, sample.truth, lambda flow: ground(flow, **given))


def ground_narrated_sample(sample: Narrated, flow: FlowGraph, transcript: Transcript) -> tuple[Outcome, ...]:
    """Ground the narrated video in any order that ``flow`` allows, and in the order as written.

    Parameters
    ----------
    sample : Narrated
    flow : FlowGraph
        The flow graph of its text, as somebody found it.
    transcript : Transcript
        Its narration.
    """
    video = str(sample.files.video)
    return _both_ways(flow, sample.truth, lambda flow: ground(flow, transcript, video_name=video))


def ground_silent_sample(sample: Silent, flow: FlowGraph, transcript: Transcript) -> tuple[Outcome, ...]:
    """Ground the silent video by its text in any order that ``flow`` allows, and in the order as written."""
    video = str(sample.files.video)
    return _both_ways(flow, sample.truth, lambda flow: ground(flow, transcript, video_name=video))


def _both_ways(
    flow: FlowGraph, truth: Mapping[int, tuple[float, float]], ground_in: Callable[[FlowGraph], Grounding]
) -> tuple[Outcome, ...]:
    annotations = [(step, start, end) for step, (start, end) in truth.items()]
    outcomes = []
    for method, order in (("graph", flow), ("linear", FlowGraph.chain(flow.steps, flow.title))):
        found = ground_in(order)
        true = labels_from_annotations(annotations, len(found.labels), found.clip_seconds)
        outcomes.append(Outcome(method, found, truth, evaluate_video(found.labels, true)))
    return tuple(outcomes)
