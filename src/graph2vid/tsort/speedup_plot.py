"""The picture of the speed-up: ρ against the number of steps, one curve per number of threads."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

from graph2vid._files import write_bytes
from graph2vid.errors import InputError, needing
from graph2vid.tsort.complexity import Complexity, even_threads

FORMATS = ("png", "svg", "pdf")

# From light to dark as threads are added; readable on white, and apart for colour-blind eyes.
_COLOURS = ("#f0a04b", "#e0705a", "#b84b74", "#7c3f8c", "#3b3477")
_INK, _FAINT = "#2b2b33", "#d9d9e0"


def plot_speed_up(path: str | os.PathLike[str], *, max_steps: int, threads: Sequence[int] = (2, 3, 4, 5, 6)) -> None:
    """Draw ρ for evenly filled threads, in log scale, and write it as PNG, SVG or PDF (by the suffix).

    Parameters
    ----------
    path : path
        Where the picture goes.
    max_steps : int
        The largest number of steps drawn.
    threads : sequence of int
        The numbers of threads, a curve each (at most five).
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(f"cannot draw {path}: the name must end in {', '.join('.' + name for name in FORMATS)}")
    with needing("plots need matplotlib", "plot"):
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, MaxNLocator

    with matplotlib.rc_context({"svg.hashsalt": "graph2vid", "text.color": _INK, "font.size": 10}):
        figure = Figure(figsize=(7.2, 4.4), facecolor="white")
        figure.set_layout_engine("constrained", w_pad=0.15, h_pad=0.12)
        axes = figure.add_subplot()
        ends = []
        for count, colour in zip(threads, _COLOURS, strict=False):
            steps = range(count, max_steps + 1)
            if not steps:
                continue
            # Logarithms are drawn, not ratios: those of many steps are beyond floating point.
            heights = [Complexity.of_threads(even_threads(n, count)).to_json()["log10_speed_up"] for n in steps]
            axes.plot(steps, heights, color=colour, linewidth=2, solid_capstyle="round")
            axes.plot(steps[-1], heights[-1], "o", color=colour, markersize=4.5, clip_on=False)
            ends.append((heights[-1], f"{count} threads", colour))
        axes.set_xlim(right=max_steps)
        bottom, top = axes.get_ylim()
        free_from = bottom
        for height, label, colour in sorted(ends):
            height = max(height, free_from)  # labels of curves that end close together are moved apart
            free_from = height + 0.06 * (top - bottom)
            axes.annotate(
                label,
                (max_steps, height),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                annotation_clip=False,
                color=colour,
                fontweight="bold",
            )
        axes.axhline(0, color=_INK, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_title("Speed-up of the tSort graph over trying every order", loc="left", fontweight="bold", pad=12)
        axes.set_xlabel("steps n, evenly over the threads", color=_INK)
        axes.set_ylabel("speed-up ρ, log scale", color=_INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda power, _: "1" if power == 0 else f"$10^{{{power:.0f}}}$"))
        axes.grid(color=_FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_FAINT)
        axes.tick_params(colors=_INK, length=0)
        picture = io.BytesIO()
        # Without a date, the same picture is the same bytes.
        date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
        figure.savefig(picture, format=form, dpi=200, metadata=date)
    write_bytes(path, picture.getvalue())
