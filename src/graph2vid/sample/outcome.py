"""Grounding the bundled sample, and how far from the truth that comes."""

from __future__ import annotations

from dataclasses import dataclass

from graph2vid.evaluate import evaluate_video, labels_from_annotations
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.sample.load import Sample

# The policies that the sample is grounded with; they suit its scores, and say nothing about other videos.
MATCH, DROP, SKIP = "raw", "percentile:20", "percentile"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one way of grounding made of the sample.

    Attributes
    ----------
    method : str
        ``"graph"`` (any legal order) or ``"linear"`` (the order as written).
    sample : Sample
        What was grounded.
    grounding : Grounding
        The result.
    measures : dict of str to float
        The measures of `graph2vid.evaluate.evaluate_video`.
    """

    method: str
    sample: Sample
    grounding: Grounding
    measures: dict[str, float]

    def span(self, step: int) -> tuple[float, float] | None:
        """Return where the step was found, in seconds; None if it was said to be not shown."""
        found = self.grounding.segments_of(step)
        return (found[0].start, found[-1].end) if found else None

    def distance(self, step: int) -> float | None:
        """Return by how many seconds start and end are off, on average; None where either is missing."""
        found, true = self.span(step), self.sample.truth.get(step)
        if found is None or true is None:
            return None
        return (abs(found[0] - true[0]) + abs(found[1] - true[1])) / 2


def ground_sample(sample: Sample) -> tuple[Outcome, ...]:
    """Ground the sample in any legal order, and in the order as written."""
    n_clips = sample.scores.shape[1]
    annotations = [(step, start, end) for step, (start, end) in sample.truth.items()]
    true = labels_from_annotations(annotations, n_clips, sample.clip_seconds)
    outcomes = []
    for method, flow in (
        ("graph", sample.flow),
        ("linear", FlowGraph.chain(sample.flow.steps, sample.flow.title)),
    ):
        found = ground(
            flow,
            scores=sample.scores,
            clip_seconds=sample.clip_seconds,
            match=MATCH,
            drop=DROP,
            skip=SKIP,
        )
        outcomes.append(Outcome(method, sample, found, evaluate_video(found.labels, true)))
    return tuple(outcomes)
