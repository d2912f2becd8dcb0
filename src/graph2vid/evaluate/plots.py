"""Pictures of an evaluation (matplotlib, extra ``plot``): bars over time, accuracy against noise and flexibility,
and the graphs of several sources side by side."""

from __future__ import annotations

import io
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

from graph2vid._files import write_bytes
from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evaluate.engine import Results
from graph2vid.evaluate.graph_statistics import Comparison, graph_methods
from graph2vid.evaluate.intervals import bootstrap_interval
from graph2vid.evaluate.labels import shared_classes, to_classes
from graph2vid.evaluate.methods import Labels, MethodResult
from graph2vid.evaluate.metrics import segments
from graph2vid.evaluate.report import Pictures
from graph2vid.evaluate.summary import SIMULATED
from graph2vid.flow import PALETTE, lay_out
from graph2vid.tsort import count_sorts

_INK, _FAINT, _EMPTY = "#2b2b33", "#d9d9e0", "#f1f1f4"
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")
_MARKERS = "osD^vP*X"


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
    rows: list[tuple[str, Labels]] = [("ground truth", to_classes(video.truth, true_classes))]
    for method in methods or [name for name in results.methods if name.startswith("graph:") or name in _SHOWN]:
        labels = results.methods[method].labels.get(at)
        if labels is not None:
            acc = 100 * results.methods[method].metrics[at]["acc"]
            rows.append((f"{method}\nacc {acc:.0f}%", to_classes(labels, predicted_classes)))
    texts = _class_texts(task.steps, true_classes, task.procedure, predicted_classes)
    there = sorted({int(label) for _, labels in rows for label in labels if label >= 0})
    look = {label: (PALETTE[i % len(PALETTE)], _HATCHES[i // len(PALETTE) % 5]) for i, label in enumerate(there)}
    edges = recording.offset + np.arange(recording.n_clips + 1) * recording.clip_seconds
    legend_rows = -(-len(there) // 3)
    with _figure(path, (9.6, 1.3 + 0.52 * len(rows) + 0.21 * legend_rows)) as (figure, patches):
        axes = figure.add_subplot()
        for place, (_, labels) in enumerate(rows):
            axes.barh(place, edges[-1] - edges[0], left=edges[0], height=0.72, color=_EMPTY, linewidth=0)
            for label, start, stop in segments(labels):
                colour, hatch = look[label]
                axes.barh(
                    place,
                    edges[stop] - edges[start],
                    left=edges[start],
                    height=0.72,
                    color=colour,
                    hatch=hatch,
                    edgecolor="white",
                    linewidth=0.4,
                )
        axes.set_yticks(range(len(rows)), [title for title, _ in rows])
        axes.invert_yaxis()
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("seconds")
        _plain(axes)
        note = f" ({SIMULATED})" if results.dataset.simulated else ""
        axes.set_title(f"{task.title or task.id}: {recording.id}{note}", loc="left", fontweight="bold")
        handles = [
            patches.Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=textwrap.shorten(texts[label], 42))
            for label, (colour, hatch) in look.items()
        ]
        figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8)


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
            colour, marker = PALETTE[place % len(PALETTE)], _MARKERS[place % len(_MARKERS)]
            means, low, high = 100 * np.array([(one.mean, one.low, one.high) for one in found]).T
            axes.fill_between(noises, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(noises, means, color=colour, marker=marker, linewidth=2, markersize=5, label=name)
        if min(noises) > 0:
            axes.set_xscale("log", base=2)
            axes.set_xticks(noises, [f"{noise:g}" for noise in noises])
            axes.minorticks_off()
        title = f"{first.dataset.name}: {metric} against noise ({SIMULATED})"
        _describe(axes, title, "noise of the simulated clip embeddings", f"{metric}, percent")


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
    plans = graph_methods(results)[source].plans
    members: dict[tuple[str, Any], list[int]] = {}
    for at, plan in plans.items():
        members.setdefault((results.videos[at].task.id, plan.flow), []).append(at)
    logs = {}
    for key in members:
        count = count_sorts(key[1], results.options.limit)
        # Python's logarithm: counts are whole numbers beyond any machine's word.
        logs[key] = (math.log10(count.lower) + math.log10(count.upper)) / 2
    with _figure(path, (7.2, 4.4)) as (figure, _):
        axes = figure.add_subplot()
        for place, name in enumerate([f"graph:{source}", "linear", "bag", "true-order"]):
            if name not in results.methods:
                continue
            metrics = results.methods[name].metrics
            points = []
            for key, videos in members.items():
                values = [metrics[at][metric] for at in videos if at in metrics]
                if values and not np.isnan(values).all():
                    points.append((logs[key], 100 * float(np.nanmean(values))))
            if not points:
                continue
            colour = PALETTE[place]
            points.sort()
            x, y = np.array(points).T
            axes.plot(x, y, _MARKERS[place], color=colour, markersize=5, alpha=0.85, linewidth=0, label=name)
            if len(np.unique(x)) > 2:
                slope, level = np.polyfit(x, y, 1)
                ends = np.array([x[0], x[-1]])
                axes.plot(ends, slope * ends + level, color=colour, linewidth=1.5, alpha=0.7)
        note = f" ({SIMULATED})" if results.dataset.simulated else ""
        title = f"{results.dataset.name}: {metric} against flexibility{note}"
        sorts, means = (
            "topological sorts of the task's graph, log10",
            f"{metric}, percent (mean over the task's videos)",
        )
        _describe(axes, title, sorts, means)


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
            axes.plot([0, 1], [0, 1], color=_FAINT, linewidth=1)
            for place, (name, columns) in enumerate(curves.items()):
                clips, confidence, right = (np.asarray(column, np.float64) for column in columns)
                some = clips > 0
                axes.plot(
                    confidence[some] / clips[some],
                    right[some] / clips[some],
                    color=PALETTE[place],
                    marker=_MARKERS[place],
                    markersize=4,
                    label=name,
                )
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
                points = [
                    (start.x + size[0] / 2, start.y + size[1]),
                    *((x, y) for x, top, bottom in layout.lanes.get(edge, ()) for y in (top, bottom)),
                    (end.x + size[0] / 2, end.y),
                ]
                colour = "#D55E00" if edge in different else "#8a8a96"
                x, y = zip(*points, strict=True)
                axes.plot(x[:-1], y[:-1], color=colour, linewidth=1.2)
                axes.annotate(
                    "",
                    points[-1],
                    points[-2],
                    arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0},
                )
            for step, box in enumerate(layout.boxes):
                axes.add_patch(
                    patches.FancyBboxPatch(
                        (box.x, box.y), *size, boxstyle="round,pad=0,rounding_size=6", facecolor="white", edgecolor=_INK
                    )
                )
                axes.text(box.x + size[0] / 2, box.y + size[1] / 2, str(step + 1), ha="center", va="center", fontsize=9)
            middle = layout.width / 2
            axes.set_xlim(middle - width / 2, middle + width / 2)
            axes.set_ylim(height + 10, -10)  # one scale for all
            axes.set_axis_off()
            axes.set_title(f"{source}: {len(flow.edges)} edges", fontsize=10, fontweight="bold")
            axes.text(0.5, -0.01, _scores(results, comparison, source), transform=axes.transAxes, ha="center", va="top")
        figure.suptitle(
            f"{comparison.task.title or comparison.task.id} (orange: not all sources imply it)", fontsize=11
        )
        handles = [
            patches.Patch(alpha=0, label=f"{number} {textwrap.shorten(text, 60)}")
            for number, text in enumerate(comparison.task.procedure, start=1)
        ]
        figure.legend(
            handles=handles,
            loc="outside lower left",
            ncols=2,
            frameon=False,
            fontsize=8,
            handlelength=0,
            handletextpad=0,
        )


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

    def worth(at: int) -> float:
        graph = next((method for name, method in results.methods.items() if name.startswith("graph:")), None)
        value = _acc(graph, at) - _acc(results.methods.get("linear"), at)
        return value if not np.isnan(value) else 0.0

    ranked = sorted(range(len(results.videos)), key=lambda at: (worth(at), results.videos[at].recording.id))
    return results.videos[ranked[len(ranked) // 2]].recording.id


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
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = results.dataset.name
    made = []

    def add(title: str, file: str, draw: Callable[[Path], None]) -> None:
        if is_drawn(folder / file, draw):
            made.append((title, file))

    for video in list(videos) or [typical_video(results)]:
        file = f"{name}-video-{_file_name(video)}.png"
        add(f"Video {video}: ground truth and methods", file, partial(plot_video, results=results, name=video))
    if sweep is not None and len(sweep) > 1:
        add("Accuracy against noise", f"{name}-noise.png", partial(plot_noise, sweep=sweep))
    for source in graph_methods(results):
        file = f"{name}-flexibility-{source}.png"
        add(
            f"Accuracy against flexibility ({source} graphs)",
            file,
            partial(plot_flexibility, results=results, source=source),
        )
    if comparison is not None:
        file = f"{name}-graphs-{_file_name(comparison.task.id)}.png"
        title = f"Graphs of {comparison.task.title or comparison.task.id}"
        add(title, file, partial(plot_comparison, comparison=comparison, results=results))
    return tuple(made)


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


def _acc(method: MethodResult | None, at: int) -> float:
    return method.metrics[at]["acc"] if method is not None and at in method.metrics else 0.0


def _class_texts(
    steps: Sequence[str], true_classes: Labels, procedure: Sequence[str], predicted_classes: Labels
) -> dict[int, str]:
    """Return what each class is called: by the dataset's steps, else by the instructions."""
    names: dict[int, list[str]] = {}
    for text, of_class in zip(steps, true_classes.tolist(), strict=True):
        names.setdefault(of_class, []).append(text)
    for text, of_class in zip(procedure, predicted_classes.tolist(), strict=True):
        if of_class not in set(true_classes.tolist()):
            names.setdefault(of_class, []).append(text)
    return {of_class: " / ".join(texts) for of_class, texts in names.items()}


def _describe(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set(xlabel=x, ylabel=y)
    axes.grid(color=_FAINT, linewidth=0.6)
    _plain(axes)
    axes.legend(frameon=False, fontsize=8)


def _plain(axes: Any) -> None:
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, length=0)


@contextmanager
def _figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and matplotlib.patches, and write the figure to ``path``."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise InputError(f"cannot draw {path}: the name must end in .png, .svg or .pdf")
    try:
        import matplotlib
        from matplotlib import patches
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib", extra="plot") from error
    look: dict[Any, Any] = {"svg.hashsalt": "graph2vid", "text.color": _INK, "font.size": 9, "hatch.linewidth": 0.6}
    with matplotlib.rc_context(look):
        figure = Figure(figsize=size, facecolor="white")
        figure.set_layout_engine("constrained")
        yield figure, patches
        picture = io.BytesIO()
        date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        figure.savefig(picture, format=form, dpi=130, metadata=date)
    write_bytes(path, picture.getvalue())
