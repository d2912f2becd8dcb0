"""The picture of the speed-up: ρ against the number of steps, one curve per number of threads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from graph2vid.flow.flow_plot import INK, plainly, written_figure
from graph2vid.tsort.complexity import Complexity, even_threads

# From light to dark as threads are added; readable on white, and apart for colour-blind eyes.
_COLOURS = ("#f0a04b", "#e0705a", "#b84b74", "#7c3f8c", "#3b3477")


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
    with written_figure(path, (7.2, 4.4), font=10.0, dpi=200) as figure:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

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
        axes.axhline(0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_title("Speed-up of the tSort graph over trying every order", loc="left", fontweight="bold", pad=12)
        axes.set_xlabel("steps n, evenly over the threads", color=INK)
        axes.set_ylabel("speed-up ρ, log scale", color=INK)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda power, _: "1" if power == 0 else f"$10^{{{power:.0f}}}$"))
        plainly(axes, left=True, grid=True)
