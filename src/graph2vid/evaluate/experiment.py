"""One evaluation from end to end: read, run, sweep the noise, compare graphs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from typing import Any

from graph2vid.datasets import DATASETS, Dataset
from graph2vid.errors import InputError
from graph2vid.evaluate.engine import Options, Progress, Results, evaluate_dataset
from graph2vid.evaluate.graph_statistics import compare_graphs, find_task
from graph2vid.evaluate.methods import Video
from graph2vid.evaluate.parsed import PARSED_BY_DEFAULT, ParsedGraphs, with_parsed_graphs
from graph2vid.evaluate.tables import Level, Report

NOISES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Levels of noise of simulated evidence: from plain to see to hardly there."""

PLAIN = "without skipped steps or order errors"

CUT_SHORT = "the run was cut short: what was not done by then is missing"
_FEW_SAMPLES = 100  # of the bootstrap, where a run is cut short


def read_dataset(name: str, data: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """Read a dataset by its name.

    Parameters
    ----------
    name : str
        A name in :data:`graph2vid.datasets.DATASETS`.
    data : path, optional
        Its folder; needed unless the dataset is made rather than read.
    options
        Of its reader; one that it does not have is an error that lists those it has.
    """
    load = DATASETS.get(name)
    known = signature(load).parameters
    needs_data = known["data"].default is Parameter.empty
    for option in options:
        if option not in known:
            has = ", ".join(key for key in known if key not in ("data", "skip_bad"))
            raise InputError(f"{name} has no option {option!r}; it has: {has}")
    if data is None:
        if needs_data:
            raise InputError(f"{name} is read from a folder: say which with --data DIR")
        return load(**options)
    return load(Path(data), **options)


def study(
    load: Callable[..., Dataset],
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    *,
    parsers: Sequence[str] | None = None,
    command: str = "",
    noises: Sequence[float] | None = None,
    task: str | None = None,
    videos: Sequence[str] = (),
    workers: int | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
    interrupted: Callable[[Report], None] | None = None,
) -> Report:
    """Evaluate a dataset and return the report.

    Parameters
    ----------
    load : callable
        Reads the dataset; with ``noise=…`` where the evidence is simulated.
    methods, options, workers, skip_bad, progress
        As for :func:`graph2vid.evaluate.engine.evaluate_dataset`.
    parsers : sequence of str, optional
        Parsers whose graphs are grounded beside the given ones: of the how-to text of a task, or else of its steps.
        By default those in :data:`graph2vid.evaluate.parsed.PARSED_BY_DEFAULT`, for tasks with a how-to text. One that
        is not available is left out with a remark, unless ``methods`` names its graph.
    command : str
        What repeats this, for the report.
    noises : sequence of float, optional
        Levels of noise; the report is about the middle one, the sweep about all. By default :data:`NOISES` where
        the evidence is simulated.
    task : str, optional
        The task whose graphs are compared.
    videos : sequence of str
        Videos that must be there, because they are to be drawn.
    interrupted : callable, optional
        Called with a report of the methods and levels of noise that are done, if there are any, when the run is
        interrupted (Ctrl+C, SIGTERM); the interrupt goes on afterwards.

    Returns
    -------
    Report
    """
    began = perf_counter()
    load = _with_parsed_graphs(load, parsers, methods)
    dataset = None if noises else load()
    levels = sorted(set(noises or (NOISES if dataset is not None and dataset.simulated else ())))
    if levels:
        dataset = load(noise=levels[len(levels) // 2])
    assert dataset is not None
    if task is not None:
        find_task(dataset, task)  # refuse a wrong name before the work
        if methods is None and any(of_task.flows for of_task in dataset.tasks.values()):
            # Beside ready graphs mined ones are not run by default, but here the sources are the point.
            methods = ["argmax", "bag", "linear", "graph", "true-order", "true-order-repeats"]
    known = {recording.id for recording in dataset.recordings}
    for name in videos:
        if name not in known:
            raise InputError(f"{dataset.name} has no video {name!r}")

    def run(read: Dataset, what: str = "", keep: Callable[[Results], None] | None = None) -> Results:
        tell: Progress | None = None
        if progress is not None:
            show = progress

            def tell(stage: str, done: int, total: int) -> None:
                show(f"{what}{stage}", done, total)

        return evaluate_dataset(
            read, methods, options, workers=workers, skip_bad=skip_bad, progress=tell, interrupted=keep
        )

    def made(everything: Results, levels_done: Mapping[float, Results], **given: Any) -> Report:
        groups = tuple((name, part) for name, member in kinds.items() if (part := everything.only(member)).videos)
        # Where recordings that break the procedure are marked, the report is about the others, and these stand apart.
        main = PLAIN if any(name == PLAIN for name, _ in groups) else ""

        def shown(results: Results) -> Results:
            return results.only(kinds[PLAIN]) if main else results

        sweep = tuple(Level(noise, shown(levels_done[noise])) for noise in sorted(levels_done))
        return Report(shown(everything), command, sweep, groups=groups, main=main, **given)

    def keep(everything: Results, levels_done: Mapping[float, Results]) -> None:
        if interrupted is not None:
            remarked = replace(everything.dataset, remarks=(*everything.dataset.remarks, CUT_SHORT))
            # There is little time: few samples, and no brute force.
            report = made(replace(everything, dataset=remarked), levels_done, samples=_FEW_SAMPLES, _made={"brute": []})
            interrupted(report.timed(perf_counter() - began))

    kinds = _kinds(dataset)
    everything = run(dataset, keep=lambda done: keep(done, {}))
    done = {levels[len(levels) // 2]: everything} if len(levels) > 1 else {}
    try:
        for noise in levels if len(levels) > 1 else []:
            if noise not in done:
                done[noise] = run(load(noise=noise), f"noise {noise:g}: ")
        report = made(everything, done)
        report.graphs()
        report.against_brute_force()
    except (KeyboardInterrupt, SystemExit):
        keep(everything, done)
        raise
    if task is not None:
        report = replace(report, comparison=compare_graphs(report.results, task))
    return report.timed(perf_counter() - began)


def _with_parsed_graphs(
    load: Callable[..., Dataset], parsers: Sequence[str] | None, methods: Sequence[str] | None
) -> Callable[..., Dataset]:
    """Return what reads the dataset and adds the graphs of parsers, each text parsed once however often it is read."""
    chosen = PARSED_BY_DEFAULT if parsers is None else parsers
    if methods is not None and "graph" not in methods:
        chosen = [name for name in chosen if f"graph:{name}" in methods]
    graphs = ParsedGraphs(chosen)

    def loaded(**options: Any) -> Dataset:
        dataset = with_parsed_graphs(load(**options), graphs, all_tasks=parsers is not None)
        for name, why in graphs.unavailable.items():
            if f"graph:{name}" in (methods or ()):
                raise InputError(f"graph:{name} cannot be had: {why}")
        return dataset

    return loaded


def _kinds(dataset: Dataset) -> dict[str, Callable[[Video], bool]]:
    """Return the kinds of recordings that the notes of a dataset tell apart, those that follow the procedure first."""
    if not any("order_error" in recording.notes for recording in dataset.recordings):
        return {}

    def skips(video: Video) -> bool:
        return bool(video.recording.notes.get("skipped"))

    def misorders(video: Video) -> bool:
        return bool(video.recording.notes.get("order_error"))

    return {
        PLAIN: lambda video: not skips(video) and not misorders(video),
        "with skipped steps": skips,
        "with order errors": misorders,
        "all": lambda _: True,
    }
