"""Draw the plots of the documentation: ``python examples/plots.py [FOLDER]`` writes plot-*.png (to docs/assets)."""

from __future__ import annotations

import sys
from pathlib import Path

import graph2vid as g2v
from graph2vid.sample import load
from graph2vid.sample.outcome import ground_sample

SALAD = g2v.FlowGraph.from_edges(
    [("1", "cut the tomato"), ("2", "put it in a bowl"), ("3", "peel the cucumber"), ("4", "cut it"), ("5", "mix")],
    [("1", "2"), ("2", "5"), ("3", "4"), ("4", "5")],
    title="Salad",
)


def draw(folder: Path) -> list[Path]:
    """Draw all plots into a folder, and return the files."""
    import matplotlib

    matplotlib.use("Agg")
    sample = load()
    graph, linear = (outcome.grounding for outcome in ground_sample(sample))
    truth = [(step, start, end) for step, (start, end) in sample.truth.items()]
    plots = {
        "bars": graph.plot_bars({"linear": linear, "truth": truth}, name="graph"),
        "steps": graph.plot(),
        "evidence": graph.plot_evidence(),
        "flow": graph.plot_flow(),
        "tsort": g2v.TSortGraph.compile(SALAD).plot(),
    }
    files = []
    for name, ax in plots.items():
        files.append(folder / f"plot-{name}.png")
        ax.figure.savefig(files[-1], dpi=120, metadata={"Software": None})
        matplotlib.pyplot.close(ax.figure)
    return files


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "assets"
    for file in draw(place):
        print(f"wrote {file}")
