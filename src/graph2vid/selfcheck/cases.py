"""Random cases: a graph, costs and options, each reproducible from a seed and its number alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graph2vid.alignment import ClipCosts
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck.enumerate import Kind, Rule

Floats = NDArray[np.floating[Any]]
Edges = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Case:
    """One random problem.

    Attributes
    ----------
    seed, index
        What it is made from.
    kind
        The family of its graph.
    flow
        The procedure, of K steps.
    costs
        The costs of the video.
    others
        ClipCosts of further videos of the same procedure and floating type, for batches.
    contiguous
        Whether a step is one unbroken segment.
    gamma
        Temperature of the soft minimum.
    rules
        Constraints on ``costs``, as plain values (kind, step, start, stop).
    exact
        Whether all costs are whole numbers, so that sums are exact and labels must agree.
    """

    seed: int
    index: int
    kind: str
    flow: FlowGraph
    costs: ClipCosts
    others: tuple[ClipCosts, ...]
    contiguous: bool
    gamma: float
    rules: tuple[Rule, ...]
    exact: bool

    def lowered(self) -> ClipCosts:
        """Return the costs with the constraints written into them as ∞."""
        match, drop = self.costs.match.copy(), self.costs.drop.copy()
        skip = None if self.costs.skip is None else self.costs.skip.copy()
        for kind, step, start, stop in self.rules:
            span = np.zeros(len(drop), bool)
            span[start:stop] = True
            if kind == "within":
                match[step, ~span] = np.inf
                if skip is not None:
                    skip[step] = np.inf
            elif kind == "forbid":
                match[step, span] = np.inf
            else:  # background or show: no other label in the span
                others = np.arange(len(match)) != (-1 if step is None else step)
                match[np.ix_(others, span)] = np.inf
                if kind == "show":
                    drop[span] = np.inf
        return ClipCosts(match, drop, skip)

    def to_json(self) -> dict[str, Any]:
        """Return everything needed to repeat the case, as plain JSON values (∞ is written "inf")."""
        return {
            "seed": self.seed,
            "index": self.index,
            "kind": self.kind,
            "steps": len(self.flow),
            "edges": [list(edge) for edge in self.flow.edges],
            "dtype": str(self.costs.match.dtype),
            "videos": [
                {name: plain(array) for name, array in costs._asdict().items()} for costs in (self.costs, *self.others)
            ],
            "contiguous": self.contiguous,
            "gamma": self.gamma,
            "rules": [list(rule) for rule in self.rules],
            "exact": self.exact,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Case:
        """Rebuild a case from what :meth:`to_json` returned."""

        def array(entries: Any) -> Floats:
            return np.array(entries, dtype=np.float64).astype(value["dtype"])  # numpy reads "inf"

        videos = [
            ClipCosts(
                array(video["match"]).reshape(value["steps"], -1),
                array(video["drop"]),
                None if video["skip"] is None else array(video["skip"]),
            )
            for video in value["videos"]
        ]
        return cls(
            seed=value["seed"],
            index=value["index"],
            kind=value["kind"],
            flow=_flow(value["steps"], [(before, after) for before, after in value["edges"]]),
            costs=videos[0],
            others=tuple(videos[1:]),
            contiguous=value["contiguous"],
            gamma=value["gamma"],
            rules=tuple((kind, step, start, stop) for kind, step, start, stop in value["rules"]),
            exact=value["exact"],
        )


def plain(array: Floats | None) -> Any:
    if array is None:
        return None
    if array.ndim > 1:
        return [plain(row) for row in array]
    return [float(entry) if np.isfinite(entry) else "inf" for entry in array]


def _flow(n_steps: int, edges: Edges) -> FlowGraph:
    return FlowGraph.from_edges([f"step {step}" for step in range(n_steps)], edges)


# A family draws edges over 0 … K-1 that point from smaller to larger numbers; steps are renumbered later.


def _chain(random: Generator, n_steps: int) -> Edges:
    return [(step, step + 1) for step in range(n_steps - 1)]


def _bag(random: Generator, n_steps: int) -> Edges:
    return []


def _tree(random: Generator, n_steps: int) -> Edges:
    return [(int(random.integers(step)), step) for step in range(1, n_steps)]


def _join(random: Generator, n_steps: int) -> Edges:
    """A tree turned round: several roots that run into one sink."""
    return [(n_steps - 1 - after, n_steps - 1 - before) for before, after in _tree(random, n_steps)]


def _threads(random: Generator, n_steps: int) -> Edges:
    """Chains side by side."""
    thread = random.integers(1 + n_steps // 2, size=n_steps)
    members = [np.flatnonzero(thread == number).tolist() for number in range(1 + n_steps // 2)]
    return [pair for chain in members for pair in itertools.pairwise(chain)]


def _layers(random: Generator, n_steps: int) -> Edges:
    """Every step of a layer before every step of the next: several roots and several sinks."""
    layer = np.sort(random.integers(3, size=n_steps))
    return [(a, b) for a in range(n_steps) for b in range(n_steps) if layer[b] == layer[a] + 1]


def _random(random: Generator, n_steps: int, share: float = 0.35) -> Edges:
    return [(a, b) for b in range(n_steps) for a in range(b) if random.random() < share]


def _loose(random: Generator, n_steps: int) -> Edges:
    return _random(random, n_steps, 0.03)


def _dense(random: Generator, n_steps: int) -> Edges:
    return _random(random, n_steps, 0.75)


def _disconnected(random: Generator, n_steps: int) -> Edges:
    """Two random graphs side by side."""
    left = int(random.integers(n_steps + 1))
    right = _random(random, n_steps - left, 0.5)
    return _random(random, left, 0.5) + [(a + left, b + left) for a, b in right]


FAMILIES: dict[str, Callable[[Generator, int], Edges]] = {
    "chain": _chain,
    "bag": _bag,
    "tree": _tree,
    "join": _join,
    "threads": _threads,
    "layers": _layers,
    "random": _random,
    "loose": _loose,
    "dense": _dense,
    "disconnected": _disconnected,
}


def _draw_flow(random: Generator, kind: str, n_steps: int) -> FlowGraph:
    name = random.permutation(n_steps)
    edges = [(int(name[a]), int(name[b])) for a, b in FAMILIES[kind](random, n_steps)]
    random.shuffle(edges)
    return _flow(n_steps, edges)


def _draw_costs(random: Generator, n_steps: int, n_clips: int, style: str, holes: float, skips: str) -> ClipCosts:
    """Draw costs in float64; ``holes`` is the share of match costs that are ∞ (of drop costs: a third)."""

    def draw(*shape: int) -> Floats:
        if style == "ties":  # so few values that most optima are not alone
            return random.integers(0, 3, shape).astype(np.float64)
        if style == "zeros":
            return np.zeros(shape)
        if style == "whole":
            return random.integers(-9, 20, shape).astype(np.float64)
        return random.normal(1, 2, shape)

    match, drop = draw(n_steps, n_clips), draw(n_clips)
    match[random.random(match.shape) < holes] = np.inf
    drop[random.random(drop.shape) < holes / 3] = np.inf
    skip = None
    if skips != "never":
        skip = draw(n_steps) + (1 if skips == "high" else 0)
        if skips == "some":
            skip[random.random(n_steps) < 0.5] = np.inf
    return ClipCosts(match, drop, skip)


def _draw_size(random: Generator) -> tuple[int, int]:
    """Draw (steps, clips): mostly small enough to be enumerated."""
    size = random.random()
    if size < 0.68:
        n_steps = int(random.integers(1, 5))
        most_clips = {1: 9, 2: 7, 3: 6, 4: 5}[n_steps]
        return n_steps, int(random.integers(1, most_clips + 1))
    if size < 0.96:
        n_steps = int(random.integers(2, 7))
        return n_steps, int(random.integers(1, 13))
    n_steps = int(random.integers(5, 9))
    return n_steps, int(random.integers(n_steps, 33))


def draw_rule(random: Generator, n_steps: int, n_clips: int) -> Rule:
    kinds: list[Kind] = ["within", "forbid", "background", "show"]
    kind = kinds[random.integers(len(kinds))]
    start = int(random.integers(n_clips))
    longest = n_clips - start if kind in ("within", "forbid") else min(2, n_clips - start)
    stop = start + int(random.integers(1, longest + 1))
    return kind, None if kind == "background" else int(random.integers(n_steps)), start, stop


def make_case(seed: int, index: int) -> Case:
    """Make case ``index`` of the series ``seed``; the same one for ever, whatever was made before it."""
    random = np.random.default_rng([seed, index])
    kind = str(random.choice(list(FAMILIES)))
    n_steps, n_clips = _draw_size(random)
    rare = random.random()
    if rare < 0.003:  # more steps than bits in a word
        kind, n_steps = "chain", int(random.integers(65, 75))
        n_clips = n_steps + int(random.integers(-1, 12))
    elif rare < 0.011:  # a table so large that the kernels cut it up
        kind, n_steps = "bag" if rare < 0.007 else "loose", int(random.integers(10, 12))
        n_clips = int(random.integers(70, 140))
    style = str(random.choice(["ties", "zeros", "whole", "float"], p=[0.4, 0.05, 0.25, 0.3]))
    holes = float(random.choice([0.0, 0.1, 0.4], p=[0.6, 0.3, 0.1]))
    skips = str(random.choice(["never", "any", "high", "some"], p=[0.4, 0.2, 0.2, 0.2]))
    dtype = np.float32 if random.random() < 0.4 else np.float64
    n_videos = 1 if random.random() < 0.7 else int(random.integers(2, 10))
    equal_lengths = random.random() < 0.5

    videos = []
    for video in range(n_videos):
        length = n_clips if video == 0 or equal_lengths else int(random.integers(1, n_clips + 3))
        videos.append(_draw_costs(random, n_steps, length, style, holes, skips).astype(dtype))
    n_rules = int(random.choice([0, 1, 2], p=[0.75, 0.18, 0.07]))
    return Case(
        seed=seed,
        index=index,
        kind=kind,
        flow=_draw_flow(random, kind, n_steps),
        costs=videos[0],
        others=tuple(videos[1:]),
        contiguous=bool(random.random() < 0.5),
        gamma=float(random.choice([1e-3, 0.05, 0.3, 1.0, 10.0])),
        rules=tuple(draw_rule(random, n_steps, n_clips) for _ in range(n_rules)),
        exact=style != "float",
    )
