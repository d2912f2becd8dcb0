"""Pictures of an evaluation (matplotlib, extra ``plot``): bars over time, accuracy against noise and flexibility,
and the graphs of several sources side by side."""

from __future__ import annotations

import math
import os
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graph2vid.alignment.alignment_plot import Bar, Span, plot_rows
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evaluate.engine import Results
from graph2vid.evaluate.graph_statistics import Comparison, graph_methods
from graph2vid.evaluate.intervals import bootstrap_interval, defined_mean
from graph2vid.evaluate.labels import Labels, shared_classes, to_classes
from graph2vid.evaluate.methods import MethodResult
from graph2vid.evaluate.metrics import segments
from graph2vid.evaluate.report import Pictures
from graph2vid.evaluate.summary import SIMULATED, Summary
from graph2vid.flow import PALETTE, FlowGraph, colour_of, lay_out
from graph2vid.flow.flow_plot import FAINT, INK, plainly, written_figure
from graph2vid.tsort import count_sorts

_MARKERS = "osD^vP*X"
_BELOW: dict[str, Any] = {"loc": "outside lower left", "frameon": False, "fontsize": 8}
"""Of legends."""


def plot_video(path: str | os.PathLike[str], results: Results, name: str, methods: Sequence[str] | None = None) -> None:
    """Draw the ground truth and what methods found in a video as coloured bars over time, with the step texts.

    Parameters
    ----------
    path : path
        .png, .svg or .pdf.
    results : Results
    name : str
        The id of a test video.
    methods : sequence of str, optional
        By default the graphs, linear and true-order.
    """
    at = find_video(results, name)
    video = results.videos[at]
    task, recording = video.task, video.recording
    true_classes, predicted_classes = shared_classes(task.correspondence, len(task.procedure))
    found: dict[str, Labels] = {"ground truth": to_classes(video.truth, true_classes)}
    for method in methods or [name for name in results.methods if name.startswith("graph:") or name in _SHOWN]:
        labels = results.methods[method].labels.get(at)
        if labels is not None:
            acc = 100 * results.methods[method].metrics[at]["acc"]
            found[f"{method}, acc {acc:.0f}%"] = to_classes(labels, predicted_classes)
    texts = _class_texts(task.steps, true_classes, task.procedure, predicted_classes)
    title = f"{task.title or task.id}: {recording.id}{Summary(results).suffix}"
    classes = FlowGraph.bag([texts.get(one, "") for one in range(max(texts) + 1)], title)
    edges = recording.offset + np.arange(recording.n_clips + 1) * recording.clip_seconds
    rows = {
        name: [Bar(label, edges[start], edges[stop]) for label, start, stop in segments(labels)]
        for name, labels in found.items()
    }
    with _figure(path, (9.6, 1.3 + 0.52 * len(rows) + 0.105 * len(texts))) as (figure, _):
        plot_rows(classes, rows, Span(edges[0], edges[-1], "time"), figure.add_subplot(), alone=True)


_SHOWN = ("linear", "true-order")


def plot_noise(path: str | os.PathLike[str], sweep: Mapping[float, Results], metric: str = "acc") -> None:
    """Draw a metric (percent, with 95% intervals) of every method against the noise of simulated evidence."""
    with _figure(path, (7.2, 4.4)) as (figure, _):
        axes = figure.add_subplot()
        noises = list(sweep)
        first = sweep[noises[0]]
        for place, name in enumerate(first.methods):
            found = [
                bootstrap_interval([row[metric] for row in results.methods[name].metrics.values()], samples=2000)
                for results in sweep.values()
            ]
            colour, marker = colour_of(place), _MARKERS[place % len(_MARKERS)]
            means, low, high = 100 * np.array([(one.mean, one.low, one.high) for one in found]).T
            axes.fill_between(noises, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(noises, means, color=colour, marker=marker, linewidth=2, markersize=5, label=name)
        if min(noises) > 0:
            axes.set_xscale("log", base=2)
            axes.set_xticks(noises, [f"{noise:g}" for noise in noises])
            axes.minorticks_off()
        _plain(axes, f"{first.dataset.name}: {metric} against noise ({SIMULATED})", has_grid=True)
        axes.set(xlabel="noise of the simulated clip embeddings", ylabel=f"{metric}, percent")


def plot_flexibility(path: str | os.PathLike[str], results: Results, source: str, metric: str = "acc") -> None:
    """Draw a metric per task against the number of topological sorts of its graph (log scale).

    Parameters
    ----------
    path : path
    results : Results
    source : str
        Which graphs count.
    metric : str
    """
    members: dict[tuple[str, Any], list[int]] = {}
    for at, plan in graph_methods(results)[source].plans.items():
        members.setdefault((results.videos[at].task.id, plan.flow), []).append(at)
    counts = {key: count_sorts(key[1], results.options.limit) for key in members}
    # Python's logarithm: counts are whole numbers beyond any machine's word.
    logs = {key: (math.log10(count.lower) + math.log10(count.upper)) / 2 for key, count in counts.items()}
    with _figure(path, (7.2, 4.4)) as (figure, _):
        axes = figure.add_subplot()
        for place, name in enumerate([f"graph:{source}", "linear", "bag", "true-order"]):
            metrics = results.methods[name].metrics if name in results.methods else {}
            points = []
            for key, videos in members.items():
                mean = defined_mean([metrics[at][metric] for at in videos if at in metrics])
                if not math.isnan(mean):
                    points.append((logs[key], 100 * mean))
            if not points:
                continue
            x, y = np.array(sorted(points)).T
            axes.plot(x, y, _MARKERS[place], color=PALETTE[place], markersize=5, alpha=0.85, linewidth=0, label=name)
            if len(np.unique(x)) > 2:
                slope, level = np.polyfit(x, y, 1)
                ends = np.array([x[0], x[-1]])
                axes.plot(ends, slope * ends + level, color=PALETTE[place], linewidth=1.5, alpha=0.7)
        title = f"{results.dataset.name}: {metric} against flexibility{Summary(results).suffix}"
        _plain(axes, title, has_grid=True)
        axes.set_xlabel("topological sorts of the task's graph, log10")
        axes.set_ylabel(f"{metric}, percent (mean over the task's videos)")


def plot_reliability(path: str | os.PathLike[str], bins: Mapping[str, Mapping[str, Sequence[ArrayLike]]]) -> None:
    """Draw how often labels are right against how sure they are, a panel for each dataset.

    Parameters
    ----------
    path : path
        Ends in ``.png``, ``.svg`` or ``.pdf``.
    bins : mapping
        By dataset and by name of the curve: clips, sums of their confidences, and right ones of each bin.
    """
    with _figure(path, (3.4 * len(bins), 3.4)) as (figure, _):
        panels = figure.subplots(1, len(bins), squeeze=False, sharey=True)[0]
        for axes, (dataset, curves) in zip(panels, bins.items(), strict=True):
            axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
            for place, (name, columns) in enumerate(curves.items()):
                clips, confidence, right = (np.asarray(column, np.float64) for column in columns)
                some, look = clips > 0, {"color": PALETTE[place], "marker": _MARKERS[place], "label": name}
                axes.plot(confidence[some] / clips[some], right[some] / clips[some], markersize=4, **look)
            axes.set(title=dataset, xlabel="confidence", xlim=(0, 1), ylim=(0, 1), aspect="equal")
            axes.legend(frameon=False, loc="upper left")
            _plain(axes)
        panels[0].set_ylabel("share of right clips")


def plot_comparison(path: str | os.PathLike[str], comparison: Comparison, results: Results) -> None:
    """Draw the graphs of several sources side by side, scores under each; edges on which they differ are coloured."""
    size = (40.0, 26.0)
    flows = comparison.flows
    layouts = {source: lay_out(flow, [size] * len(flow)) for source, flow in flows.items()}
    different = {(edge.before, edge.after): edge for edge in comparison.differences}
    height = max(layout.height for layout in layouts.values())
    widths = [max(layout.width, 90.0) + 20 for layout in layouts.values()]  # room for the words above and below
    legend_rows = -(-len(comparison.task.procedure) // 2)
    scale = 1 / 60
    across, down = max(8.0, min(14.0, sum(widths) * scale)), min(6.0, height * scale) + 1.2 + 0.19 * legend_rows
    with _figure(path, (across, down)) as (figure, patches):
        places = figure.subplots(1, len(flows), squeeze=False, width_ratios=widths)[0]
        for axes, width, (source, flow) in zip(places, widths, flows.items(), strict=True):
            layout = layouts[source]
            for edge in flow.edges:
                start, end = layout.boxes[edge[0]], layout.boxes[edge[1]]
                lanes = [(x, y) for x, top, bottom in layout.lanes.get(edge, ()) for y in (top, bottom)]
                points = [(start.x + size[0] / 2, start.y + size[1]), *lanes]
                colour = "#D55E00" if edge in different else "#8a8a96"
                axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.2)
                arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
                axes.annotate("", (end.x + size[0] / 2, end.y), points[-1], arrowprops=arrow)
            look = {"boxstyle": "round,pad=0,rounding_size=6", "facecolor": "white", "edgecolor": INK}
            for step, box in enumerate(layout.boxes):
                axes.add_patch(patches.FancyBboxPatch((box.x, box.y), *size, **look))
                axes.text(box.x + size[0] / 2, box.y + size[1] / 2, str(step + 1), ha="center", va="center", fontsize=9)
            middle = layout.width / 2
            axes.set(xlim=(middle - width / 2, middle + width / 2), ylim=(height + 10, -10))  # one scale for all
            axes.set_axis_off()
            axes.set_title(f"{source}: {len(flow.edges)} edges", fontsize=10, fontweight="bold")
            axes.text(0.5, -0.01, _scores(results, comparison, source), transform=axes.transAxes, ha="center", va="top")
        title = comparison.task.title or comparison.task.id
        figure.suptitle(f"{title} (orange: not all sources imply it)", fontsize=11)
        texts = [f"{at} {textwrap.shorten(text, 60)}" for at, text in enumerate(comparison.task.procedure, start=1)]
        handles = [patches.Patch(alpha=0, label=text) for text in texts]
        figure.legend(handles=handles, ncols=2, handlelength=0, handletextpad=0, **_BELOW)


def _scores(results: Results, comparison: Comparison, source: str) -> str:
    """Return the scores of the task's videos under the graph of a source, in words."""
    method = results.methods.get(source if source == "linear" else f"graph:{source}", MethodResult(source))
    members = [at for at in method.metrics if results.videos[at].task.id == comparison.task.id]
    if not members:
        return "not evaluated"
    acc, iou = (100 * np.nanmean([method.metrics[at][name] for at in members]) for name in ("acc", "iou"))
    return f"acc {acc:.1f}, iou {iou:.1f}"


def typical_video(results: Results) -> str:
    """Return the id of the video whose difference graph - linear (else its accuracy) is the median one."""
    graph = next((name for name in results.methods if name.startswith("graph:")), "")

    def acc(name: str, at: int) -> float:
        return results.methods.get(name, MethodResult(name)).metrics.get(at, {"acc": 0.0})["acc"]

    gains = [np.nan_to_num(acc(graph, at) - acc("linear", at)) for at in range(len(results.videos))]
    ranked = sorted(zip(gains, (video.recording.id for video in results.videos), strict=True))
    return ranked[len(ranked) // 2][1]


def find_video(results: Results, name: str) -> int:
    """Return the place of a test video."""
    for at, video in enumerate(results.videos):
        if video.recording.id == name:
            return at
    raise InputError(f"{results.dataset.name}: {name!r} is not among the {len(results.videos)} videos evaluated")


def draw_all(
    folder: str | os.PathLike[str],
    results: Results,
    *,
    sweep: Mapping[float, Results] | None = None,
    comparison: Comparison | None = None,
    videos: Iterable[str] = (),
) -> Pictures:
    """Draw every picture that the evaluation has something for, as PNG, into a folder (made if need be).

    A picture that cannot be drawn is a warning; the others are drawn all the same.

    Returns
    -------
    tuple of (str, str)
        Titles and file names of those drawn.
    """
    wanted: list[tuple[str, str, Callable[[Path], None]]] = []
    for video in list(videos) or [typical_video(results)]:
        draw = partial(plot_video, results=results, name=video)
        wanted.append((f"Video {video}: ground truth and methods", f"video-{_file_name(video)}", draw))
    if sweep is not None and len(sweep) > 1:
        wanted.append(("Accuracy against noise", "noise", partial(plot_noise, sweep=sweep)))
    for source in graph_methods(results):
        draw = partial(plot_flexibility, results=results, source=source)
        wanted.append((f"Accuracy against flexibility ({source} graphs)", f"flexibility-{source}", draw))
    if comparison is not None:
        title = f"Graphs of {comparison.task.title or comparison.task.id}"
        draw = partial(plot_comparison, comparison=comparison, results=results)
        wanted.append((title, f"graphs-{_file_name(comparison.task.id)}", draw))
    named = [(title, f"{results.dataset.name}-{name}.png", draw) for title, name, draw in wanted]
    return tuple((title, file) for title, file, draw in named if is_drawn(Path(folder, file), draw))


def is_drawn(path: Path, draw: Callable[[Path], None]) -> bool:
    """Draw a picture and say whether that went well; where it did not, there is a warning."""
    try:
        draw(path)
    except Exception as error:
        warnings.warn(f"{path} could not be drawn: {error}", stacklevel=2)
        return False
    return True


def check_plots(folder: str | os.PathLike[str]) -> None:
    """Refuse, before any work, to draw pictures where that cannot be: without matplotlib, or into no folder."""
    if find_spec("matplotlib") is None:
        raise MissingDependencyError("plots need matplotlib", extra="plot")
    Path(folder).mkdir(parents=True, exist_ok=True)


def _file_name(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in name)


def _class_texts(
    steps: Sequence[str], true_classes: Labels, procedure: Sequence[str], predicted_classes: Labels
) -> dict[int, str]:
    """Return what each class is called: by the dataset's steps, else by the instructions."""
    known = set(true_classes.tolist())
    rest = [pair for pair in zip(predicted_classes.tolist(), procedure, strict=True) if pair[0] not in known]
    names: dict[int, list[str]] = {}
    for of_class, text in [*zip(true_classes.tolist(), steps, strict=True), *rest]:
        names.setdefault(of_class, []).append(text)
    return {of_class: " / ".join(texts) for of_class, texts in names.items()}


def _plain(axes: Any, title: str = "", *, has_grid: bool = False) -> None:
    if title:
        axes.set_title(title, loc="left", fontweight="bold")
    if has_grid:
        axes.legend(frameon=False, fontsize=8)
    plainly(axes, left=True, grid=has_grid)


@contextmanager
def _figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and matplotlib.patches, and write the figure to ``path``."""
    check_plots(Path(path).parent)
    with written_figure(path, size) as figure:
        from matplotlib import patches

        yield figure, patches
