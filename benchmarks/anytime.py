"""``python -m benchmarks anytime``: the search for procedures with too many ideals, until its answer is proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graph2vid as g2v
from benchmarks.cases import choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, duration, table
from benchmarks.timing import Effort
from graph2vid.evidence import Costs, cosine_similarity, costs_from_arrays
from graph2vid.tsort import ideals_bound

NOISE = {"clear": 2.0, "noisy": 3.0, "harsh": 4.0}
PROCEDURES, CLIPS, SECONDS = 50, 600, 10.0
DIMENSIONS, ALIKE, PERSISTENCE, SERIES = 64, 0.6, 0.8, 0.1


def bench_anytime(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
    procedures: int = PROCEDURES,
) -> Report:
    """Search for alignments of random procedures; parameters, result and errors as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    found = []
    for name in choose({name: name for name in NOISE}, only):
        if progress is not None:
            progress(name)
        found.append(
            {"name": name, "noise": NOISE[name], "videos": [measure(NOISE[name], n) for n in range(procedures)]}
        )
    shown = table(
        "Anytime search",
        f"{procedures} random series-parallel procedures of 35 to 60 steps in 6 to 10 threads, each with a video of "
        f"{CLIPS} clips: how many answers are proven optimal within {SECONDS:g} s, and what that takes "
        "on one processor (time that passes, and that of the processor); nodes are states expanded. Accuracies are "
        "of clips that show a step, by the best step of each clip alone and by the alignment. Ideals: an upper bound.",
        ("scores", "ideals", "argmax", "aligned", "proven", "median", "slowest", "processor, median", "nodes, median"),
        [_row(case) for case in found],
    )
    return Report("anytime", tuple(only or ()), before, tuple(found), (shown,), time.perf_counter() - begin)


def _row(case: dict[str, Any]) -> tuple[str, ...]:
    column = {key: np.array([one[key] for one in case["videos"]]) for key in case["videos"][0]}
    return (
        case["name"],
        f"10^{np.log10(column['ideals'].min()):.1f} – 10^{np.log10(column['ideals'].max()):.1f}",
        f"{100 * column['argmax'].mean():.0f}%",
        f"{100 * column['aligned'].mean():.0f}%",
        f"{(column['gap'] == 0).sum()} of {len(column['gap'])}",
        duration(float(np.median(column["seconds"]))),
        duration(float(column["seconds"].max())),
        duration(float(np.median(column["processor_seconds"]))),
        f"{int(np.median(column['expanded'])):,}",
    )


def measure(noise: float, seed: int) -> dict[str, Any]:
    """Search for the alignment of one procedure with one video."""
    flow = procedure(np.random.default_rng(seed))
    costs, truth, argmax = video(flow, noise, np.random.default_rng([seed, 1]))
    began, spent = time.perf_counter(), time.process_time()
    answer = g2v.align(flow, costs.match, costs.drop, method="anytime", time_limit=SECONDS)
    shown = truth >= 0
    return {
        "steps": len(flow),
        "ideals": float(ideals_bound(flow)[1]),
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - spent,
        "cost": answer.cost,
        "gap": answer.gap,
        "argmax": float((argmax == truth)[shown].mean()),
        "aligned": float((answer.labels == truth)[shown].mean()),
        **{key: answer.options[key] for key in ("beam", "rounds", "expanded")},
    }


def procedure(random: np.random.Generator) -> g2v.FlowGraph:
    """Return 6 to 10 threads of at least two steps, 35 to 60 in all, which are put together two by two, in any order:
    one time in ten one after the other, else side by side."""
    threads, n_steps = int(random.integers(6, 11)), int(random.integers(35, 61))
    lengths = 2 + random.multinomial(n_steps - 2 * threads, random.dirichlet(np.full(threads, 3.0)))
    parts: list[tuple[list[int], list[int]]] = []  # first and last steps
    edges: list[tuple[int, int]] = []
    first = 0
    for length in lengths.tolist():
        last = first + length - 1
        edges += [(step, step + 1) for step in range(first, last)]
        parts.append(([first], [last]))
        first = last + 1
    while len(parts) > 1:
        one, other = (parts.pop(int(random.integers(len(parts)))) for _ in range(2))
        if random.random() < SERIES:
            edges += [(a, b) for a in one[1] for b in other[0]]
            parts.append((one[0], other[1]))
        else:
            parts.append((one[0] + other[0], one[1] + other[1]))
    return g2v.FlowGraph.from_edges([f"step {step}" for step in range(n_steps)], edges)


def video(
    flow: g2v.FlowGraph, noise: float, random: np.random.Generator
) -> tuple[Costs, NDArray[np.int64], NDArray[np.int64]]:
    """Return the costs of a video, its true labels [N], and the most similar step of each clip [N].

    The steps come in a random legal order, with background between them; lengths are log-normal. Steps are embedded in
    64 dimensions, four of a kind on average, and a clip is the embedding of its step (0 for background) plus noise that
    changes slowly: each clip's has a correlation of 0.8 with the last. The costs are those that `graph2vid ground`
    makes of embeddings by default.
    """
    n_steps = len(flow)
    order: list[int] = []
    while len(order) < n_steps:
        ready = [k for k in range(n_steps) if k not in order and set(flow.predecessors[k]) <= set(order)]
        order.append(int(random.choice(ready)))
    share = random.lognormal(0.0, 0.6, 2 * n_steps + 1)
    share[::2] *= 0.7  # background
    lengths = np.diff(np.round(np.append(0.0, np.cumsum(share)) / share.sum() * (CLIPS - n_steps))).astype(np.int64)
    lengths[1::2] += 1
    shown = np.full(2 * n_steps + 1, -1)
    shown[1::2] = order
    truth = np.repeat(shown, lengths)

    kinds = random.normal(size=(n_steps // 4, DIMENSIONS))[random.integers(n_steps // 4, size=n_steps)]
    steps = _unit(ALIKE * _unit(kinds) + (1 - ALIKE) * _unit(random.normal(size=(n_steps, DIMENSIONS))))
    clips = random.normal(size=(CLIPS, DIMENSIONS))
    for clip in range(1, CLIPS):
        clips[clip] = PERSISTENCE * clips[clip - 1] + np.sqrt(1 - PERSISTENCE**2) * clips[clip]
    clips *= noise / np.sqrt(DIMENSIONS)
    clips[truth >= 0] += steps[truth[truth >= 0]]
    return costs_from_arrays(steps=steps, clips=clips), truth, cosine_similarity(steps, clips).argmax(axis=0)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float64)
