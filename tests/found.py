"""Groundings made by hand, for the tests of what is done with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from graph2vid.alignment import Alignment
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GroundedSegment, Grounding

AWKWARD = (
    "",
    "cut",
    "cut",
    "a --> b",
    "<b>bold</b> & \"quoted\" 'so'",
    "key=value; # \\ end",
    "two\nlines\r\nand\ttabs",
    "Äpfel schälen 🍎 皮をむく",
    "]]> </script>",
    "1",
    "\x00\x07 bell\x1b[31m",
    "  blanks  ",
    "long " * 400,
)
"""Texts that some format or other stumbles over."""


def make_grounding(
    labels: Sequence[int],
    steps: Sequence[str | tuple[str, str]] = ("wash", "cut", "mix", "serve"),
    *,
    clip_seconds: float = 1.0,
    offset: float = 0.0,
    confidence: float | None = 0.75,
    title: str = "Salad",
    video: str | None = None,
) -> Grounding:
    """Return the grounding of clips labelled with steps, or -1."""
    flow = FlowGraph.bag(list(steps), title)
    found = Alignment(flow, 1.5, np.array(labels, dtype=np.int64))
    segments = tuple(
        GroundedSegment(
            run.step,
            flow.ids[run.step],
            flow.texts[run.step],
            offset + run.start * clip_seconds,
            offset + run.stop * clip_seconds,
            confidence,
        )
        for run in found.segments
    )
    return Grounding(flow, segments, found.skipped, found.order, 1.5, found.labels, clip_seconds, offset, video=video)


_texts = st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))


@st.composite
def groundings(draw: st.DrawFn) -> Grounding:
    """Groundings with skipped and repeated steps, awkward texts, and clips of many lengths."""
    texts = draw(st.lists(_texts, min_size=1, max_size=6))
    labels = draw(st.lists(st.integers(-1, len(texts) - 1), min_size=1, max_size=40))
    steps = [(str(number), text) for number, text in enumerate(texts, start=1)]
    return make_grounding(
        labels,
        steps,
        clip_seconds=draw(st.sampled_from([0.04, 1.0, 3.2, 7.5])),
        offset=draw(st.sampled_from([0.0, 0.5, 12.0, -2.0])),
        confidence=draw(st.sampled_from([None, 0.0, 1 / 3, 1.0])),
        title=draw(_texts),
        video=draw(st.sampled_from([None, "some where/my film.mp4", "https://example.org/watch?v=1&t=9#x"])),
    )
