"""Annotated videos for calibration: what a calibrator observes in them, and what is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.alignment import Problem
from graph2vid.datasets import Dataset, Narration, read_dataset
from graph2vid.errors import InputError, TooLargeError
from graph2vid.evaluate.engine import Results, evaluate_dataset
from graph2vid.evaluate.labels import shared_classes, to_classes
from graph2vid.evaluate.method_runner import Progress, match_costs, skip_costs
from graph2vid.evaluate.parsed import ParsedGraphs, with_parsed_graphs
from graph2vid.evidence import likeness, read_captions, text_embedder
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GAMMAS, NARRATION, Example, observe
from graph2vid.tsort import TSortGraph

METHODS = {"salads50": "graph:mined", "crosstask": "linear", "youcook2": "linear", "captioned": "linear"}
"""The layouts that are read, and the method whose confidences are evaluated on each."""

_MOST_STATES = 6000  # of a graph to fit on: beyond it a posterior takes too long for what it teaches


@dataclass(frozen=True)
class Source:
    """A dataset in a folder.

    Attributes
    ----------
    name : str
        What the tables call it.
    layout : str
        A key of :data:`METHODS`.
    place : Path
    options : dict
        Of the reader.
    """

    name: str
    layout: str
    place: Path
    options: dict[str, Any]

    def read(self) -> Dataset:
        """Read it; what cannot be used is passed over."""
        return read_dataset(self.layout, self.place, skip_bad=True, **self.options)


def find_sources(data: str | Path, names: Sequence[str] = ()) -> list[Source]:
    """Return the datasets in a folder: laid out in it, or in folders in it.

    CrossTask is found twice where its how-to texts are there: with the names of its steps, and with the instructions.

    Parameters
    ----------
    data : path
    names : sequence of str
        Those that are wanted; all by default.
    """
    folder = Path(data)
    found: dict[str, Source] = {}
    for place in (folder, *sorted(part for part in folder.glob("*") if part.is_dir())):
        layout = _layout(place)
        if layout is None:
            continue
        name = layout if place == folder or place.name.removesuffix("_narrated") == layout else place.name
        found.setdefault(name, Source(name, layout, place, {}))
        if layout == "crosstask" and any(place.joinpath(up, "procedures.json").exists() for up in _PROCEDURES):
            name = f"{name}:instructions"
            found.setdefault(name, Source(name, layout, place, {"descriptions": "instructions"}))
    if not found:
        raise InputError(f"{data} holds none of these datasets: {', '.join(METHODS)}")
    for name in names:
        if name not in found:
            raise InputError(f"{data} holds no dataset {name!r}; it holds: {', '.join(found)}")
    return [one for name, one in found.items() if not names or name in names]


_PROCEDURES = (".", "../crosstask_procedures", "crosstask_procedures")


def _layout(place: Path) -> str | None:
    """Return how a folder is laid out; None: in no way that is known."""
    if (place / "mapping.txt").is_file():
        return "salads50"
    if not (place / "captions").is_dir():
        return None
    if (place / "procedures").is_dir():
        return "captioned"
    if (place / "annotations").is_dir():
        return "crosstask"
    return "youcook2" if (place / "annotations.json").is_file() else None


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One video with one method: an example, and what was stated without calibration.

    Attributes
    ----------
    dataset, method, task, group : str
        Videos of one group are left out together in cross-validation.
    evidence : str
        Its kind.
    example : Example
    posterior : float64 [S]
        The mean posterior of each segment at gamma 1.
    labels : int64 [N]
        Which step of the example is stated in each clip, -1: none.
    """

    dataset: str
    method: str
    task: str
    group: str
    evidence: str
    example: Example
    posterior: NDArray[np.float64]
    labels: NDArray[np.int64]


def evaluated_videos(
    source: Source, methods: Sequence[str] = (), *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[Evaluated]:
    """Yield the videos of a dataset, each with each method.

    Parameters
    ----------
    source : Source
    methods : sequence of str
        By default that of its layout.
    workers : int, optional
    progress : callable, optional
    """
    dataset = source.read()
    parsers = [name.removeprefix("graph:") for name in methods if name.startswith("graph:")]
    parsers = [name for name in parsers if name not in ("manual", "mined", "expert")]
    if parsers and source.layout != "salads50":
        dataset = with_parsed_graphs(dataset, ParsedGraphs(parsers))
    graphs = {f"graph:{name}" for task in dataset.tasks.values() for name in task.flows}
    asked = [name for name in methods if name in ("linear", "bag", *graphs) and source.layout != "salads50"]
    asked = asked or [METHODS[source.layout]]
    results = evaluate_dataset(dataset, asked, workers=workers, skip_bad=True, progress=progress)
    own = len(dataset.tasks) == len(dataset.recordings) > 1  # every video has a procedure of its own
    for method, result in results.methods.items():
        for done, at in enumerate(sorted(result.labels), start=1):
            if methods and not _is_small(result.plans[at].flow, results):
                continue
            yield _evaluate(source, results, method, at, own)
            if progress is not None:
                progress(f"{source.name}: posteriors", done, len(result.labels))


def _is_small(flow: FlowGraph, results: Results) -> bool:
    """Return whether a posterior takes little time."""
    try:
        tsort = results.tsorts.get(flow) or TSortGraph.compile(flow, _MOST_STATES)
    except TooLargeError:
        return False
    return tsort.n_states <= _MOST_STATES


def _evaluate(source: Source, results: Results, method: str, at: int, own: bool) -> Evaluated:
    video, plan = results.videos[at], results.methods[method].plans[at]
    costs, told = video.costs, results.dataset.options
    is_narration = video.evidence.kind == "log_odds" and told.get("embedder", "wordllama") == "wordllama"
    strength = video.evidence.skip[plan.rows] if is_narration and video.evidence.skip is not None else None
    alike, captions = None, results.dataset.evidence
    if isinstance(captions, Narration):
        cues = read_captions(captions.files[video.recording.notes["video"]])
        alike = likeness(video.task.procedure, cues, text_embedder(captions.embedder))
    problem = Problem(
        results.tsorts.get(plan.flow, plan.flow),
        match_costs(plan, costs),
        costs.drop,
        skip_costs(plan, costs),
        plan.repeat,
        plan.durations,
        plan.violation,
        (),
        results.options.contiguous,
    )
    found, sharp = problem.align(), problem.posterior(GAMMAS[0])
    observed = observe(
        problem,
        found,
        clip_seconds=video.recording.clip_seconds,
        strength=strength,
        likeness=alike,
        posteriors={GAMMAS[0]: sharp},
    )
    true_classes, classes = shared_classes(video.task.correspondence, len(video.task.procedure))
    classes = classes[plan.rows]
    truth = to_classes(video.truth, true_classes) == classes[:, np.newaxis]
    right = [truth[part.step, part.start : part.stop].mean() for part in found.segments]
    known = np.isin(classes, true_classes)
    absent = np.where(known, 1.0 - truth.any(axis=1), np.nan)
    split = "" if video.split is None else video.split.name
    tasks = len(results.dataset.tasks)
    group = str(video.recording.notes.get("recipe_type") or video.task.id) if tasks > 1 else split
    return Evaluated(
        source.name,
        method,
        video.task.title if tasks > 1 and not own else group,
        f"{source.layout} {group}",
        NARRATION if is_narration else {"cosine": "embeddings"}.get(video.evidence.kind, "scores"),
        Example(observed, np.array(right), absent, truth, own),
        np.array([sharp.confidence(part) for part in found.segments]),
        found.labels,
    )
