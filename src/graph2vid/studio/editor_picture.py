"""The flow graph in the editor: where its steps lie, and how many orders it allows."""

from __future__ import annotations

from typing import Any

from graph2vid.flow import colour_of, ink_on, lay_out
from graph2vid.flow.svg import wrapped
from graph2vid.report import drawn_plan, mark_of
from graph2vid.studio.drafts import Draft
from graph2vid.tsort import count_sorts

_TEXT_SIZE, _LINE, _TEXT_WIDTH, _MOST_LINES = 14.0, 19.0, 176.0, 4
_BOX_WIDTH = _TEXT_WIDTH + 34.0
_HEAD, _FOOT = 34.0, 14.0
_COUNT_LIMIT = 2**15  # ideals; the count is shown while the graph is edited, and must not be waited for


def picture(draft: Draft) -> dict[str, Any]:
    """Return the boxes of the steps and the ways of the edges; steps by index, y downwards.

    Edges that others imply have ``implied`` and no way: they are drawn straight. Guesses that surer ones imply are left
    out: there are as many as pairs of steps.
    """
    flow = draft.flow
    reduced = flow.transitive_reduction()
    lines = [wrapped(step.text or step.id, _TEXT_SIZE, _TEXT_WIDTH, _MOST_LINES) for step in flow.steps]
    plan = lay_out(reduced, [(_BOX_WIDTH, _HEAD + _LINE * len(texts) + _FOOT) for texts in lines])
    kept = set(reduced.edges)
    boxes = [
        {"lines": texts, "mark": mark_of(flow, step), "colour": colour_of(step), "ink": ink_on(colour_of(step))}
        for step, texts in enumerate(lines)
    ]
    return drawn_plan(
        plan,
        boxes,
        {
            edge: {"implied": edge not in kept, "confidence": sure}
            for edge, sure in flow.confidence.items()
            if edge in kept or sure == 1.0
        },
    )


def orders(draft: Draft) -> dict[str, str | None]:
    """Return how many orders respect the graph."""
    count = count_sorts(draft.flow, _COUNT_LIMIT)
    between = dict.fromkeys((_written(count.lower), _written(count.upper)))
    words = "1 possible order" if count.exact == 1 else f"{' to '.join(between)} possible orders"
    exact = None if count.exact is None else str(count.exact)
    return {"exact": exact, "lower": str(count.lower), "upper": str(count.upper), "words": words}


def _written(number: int) -> str:
    """Write a number for people: with commas, or as a power of ten."""
    if number < 10**9:
        return f"{number:,}"
    digits = str(number)
    return f"{digits[0]}.{digits[1:3]} × 10^{len(digits) - 1}"
