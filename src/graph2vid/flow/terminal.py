"""Flow graphs in a terminal: one row per step, in stages, with the threads drawn beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.layout import stages
from graph2vid.flow.messages import counted

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_HUES = ("blue", "yellow", "green", "magenta", "cyan", "red")
_MOST_LANES = 16  # more threads than this are not drawn beside the rows


def summary(flow: FlowGraph) -> str:
    """Return what the graph is in one line: how many steps and threads, where it begins and ends."""
    sources, sinks = (_listed([flow.ids[step] for step in ends]) for ends in (flow.sources, flow.sinks))
    soft = sum(sure < 1.0 for sure in flow.confidence.values())
    parts = [counted(len(flow), "step"), counted(len(flow.edges), "edge")]
    parts += [f"{len(flow.optional)} of them optional"] if flow.optional else []
    parts += [f"{counted(len(flow.alternatives), 'group')} of alternatives"] if flow.alternatives else []
    parts += [f"{counted(soft, 'edge')} with soft precedence"] if soft else []
    return f"{', '.join([*parts, counted(flow.width, 'thread')])}; begins with {sources}; ends with {sinks}"


def table(flow: FlowGraph) -> Table:
    """Return a rich table of the steps by stage: 1 waits for nothing, n for something of stage n - 1.

    The lanes on the left are the threads: ``●`` marks the step's own, ``│`` one that is under way.
    """
    from rich.table import Table
    from rich.text import Text

    stage = stages(flow)
    order = sorted(range(len(flow)), key=lambda step: (stage[step], step))
    lanes = _lanes(flow, order)
    reduced = flow.transitive_reduction()
    drawn = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
    drawn.add_column("stage", no_wrap=True, justify="right", style="dim")
    drawn.add_column("", no_wrap=True)
    drawn.add_column("step", no_wrap=True, max_width=28)
    drawn.add_column("text", ratio=3)
    drawn.add_column("after", ratio=2)
    for row, step in enumerate(order):
        after = ", ".join(
            plain(flow.ids[earlier]) + ("" if (sure := reduced.confidence[earlier, step]) == 1.0 else f" ({sure:.2g})")
            for earlier in reduced.predecessors[step]
        )
        name = Text(plain(flow.ids[step]), style="bold")
        for mark in flow.marks(step):
            name.append(f" {mark}", style="not bold dim")
        number = str(stage[step] + 1) if row == 0 or stage[order[row - 1]] != stage[step] else ""
        drawn.add_row(number, lanes[row], name, Text(plain(flow.texts[step])), Text(after, style="dim"))
    return drawn


def _lanes(flow: FlowGraph, order: list[int]) -> list[Text]:
    """Return the drawing of the threads for each row."""
    from rich.text import Text

    if flow.width > _MOST_LANES:
        return [Text("●", style="dim") for _ in order]
    row_of = {step: row for row, step in enumerate(order)}
    drawn = []
    for row, step in enumerate(order):
        lane = Text()
        for number, thread in enumerate(flow.threads):
            under_way = row_of[thread[0]] < row < row_of[thread[-1]]
            sign = "●" if step in thread else "│" if under_way else " "
            lane.append(sign, style=_HUES[number % len(_HUES)])
        drawn.append(lane)
    return drawn


def _listed(ids: list[str], most: int = 6) -> str:
    shown = [plain(step_id) for step_id in ids[:most]]
    return ", ".join(shown) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def plain(text: str) -> str:
    """Return ``text`` in one line, without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
