"""Hypothesis strategies for flow graphs of every shape, shared by the tests of all packages."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from graph2vid.flow import FlowGraph

SHAPES = ("chain", "bag", "tree", "merging tree", "threads", "layers", "sparse", "dense", "disconnected")


@st.composite
def dags(draw: st.DrawFn, min_steps: int = 1, max_steps: int = 8) -> FlowGraph:
    """Draw a flow graph with ``min_steps`` to ``max_steps`` steps.

    Chains, bags, trees growing and merging, parallel threads, layers, sparse and dense graphs (several
    sources and sinks), and graphs of separate parts; the numbering of the steps is not always a legal order.
    """
    count = draw(st.integers(min_steps, max_steps))
    shape = draw(st.sampled_from(SHAPES))
    edges = _edges(draw, shape, count)
    place = draw(st.one_of(st.just(list(range(count))), st.permutations(range(count))))
    return FlowGraph.from_edges(
        [f"do thing {index}" for index in range(count)],
        [(place[a], place[b]) for a, b in edges],
        title=draw(st.sampled_from(["", shape])),
    )


def _edges(draw: st.DrawFn, shape: str, count: int) -> list[tuple[int, int]]:
    """Draw edges (a, b), a < b, over steps 0 … count-1."""
    later = range(1, count)
    if shape == "chain":
        return [(i - 1, i) for i in later]
    if shape == "bag":
        return []
    if shape == "tree":
        return [(draw(st.integers(0, i - 1)), i) for i in later]
    if shape == "merging tree":
        return [(i - 1, draw(st.integers(i, count - 1))) for i in later]
    if shape == "threads":
        threads = draw(st.integers(1, count))
        return [(i - threads, i) for i in range(threads, count)]
    if shape == "layers":
        layer = [draw(st.integers(0, 3)) for _ in range(count)]
        layer.sort()
        return [(a, b) for a in range(count) for b in range(count) if layer[b] == layer[a] + 1]
    pairs = [(a, b) for b in range(count) for a in range(b)]
    if shape == "disconnected":
        half = draw(st.integers(0, count))
        pairs = [(a, b) for a, b in pairs if (a < half) == (b < half)]
    density = {"sparse": 0.25, "dense": 0.8}.get(shape, 0.5)
    random = draw(st.randoms(use_true_random=False))
    return [pair for pair in pairs if random.random() < density]


def thread_flow(lengths: Sequence[int]) -> FlowGraph:
    """Return the flow graph of separate threads with these numbers of steps."""
    texts: list[str] = []
    edges: list[tuple[int, int]] = []
    for thread, length in enumerate(lengths, start=1):
        edges.extend((len(texts) + i, len(texts) + i + 1) for i in range(length - 1))
        texts.extend(f"thread {thread}, step {i}" for i in range(1, length + 1))
    return FlowGraph.from_edges(texts, edges)
