"""Random cases: a graph, costs and options, each reproducible from a seed and its number alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.random import Generator

from graph2vid._arrays import Floats
from graph2vid.alignment import ClipCosts, Constraint, Durations, Kind, Problem
from graph2vid.errors import GraphError
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck.enumerate import (
    Enumeration,
    Rule,
    count_sequences,
    enumerate_alignments,
    enumerate_segments,
)
from graph2vid.tsort import TSortGraph

Edges = list[tuple[int, int]]

FEATURES = ("skip", "repeat", "optional", "alternatives", "soft precedence", "durations")
_MOST_CLIPS = {1: 8, 2: 6, 3: 5, 4: 4}  # of a case with features, by the number of steps: enumeration stays cheap
_MOST_SEQUENCES = 5_000  # label sequences that are enumerated for one case


@dataclass(frozen=True, eq=False)
class Case:
    """One random problem.

    Attributes
    ----------
    seed, index
        What it is made from.
    kind
        The family of its graph; of a case with features the feature, or "together".
    flow
        The procedure, of K steps.
    costs
        The costs of the video.
    gamma
        Temperature of the soft minimum.
    rules
        Constraints on ``costs``, as plain values (kind, step, start, stop).
    exact
        Whether all costs are whole numbers, so that sums are exact and labels must agree.
    others
        ClipCosts of further videos of the same procedure and floating type, for batches.
    contiguous
        Whether a step is one unbroken segment.
    has_features, repeat, durations, violation
        Whether it is a case of the extended model, and what it asks there.
    """

    seed: int
    index: int
    kind: str
    flow: FlowGraph
    costs: ClipCosts
    gamma: float
    rules: tuple[Rule, ...]
    exact: bool
    others: tuple[ClipCosts, ...] = ()
    contiguous: bool = True
    has_features: bool = False
    repeat: Floats | None = None
    durations: Durations | None = None
    violation: float = 1.0

    @cached_property
    def tsort(self) -> TSortGraph:
        """The compiled procedure."""
        return TSortGraph.compile(self.flow)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints as callers give them."""
        return tuple(Constraint(*rule) for rule in self.rules)

    @cached_property
    def whole(self) -> Problem:
        """The problem as everybody asks it: constraints are written into the costs by it."""
        asked = (*self.costs, self.repeat, self.durations, self.violation, self.constraints, self.contiguous)
        return Problem(self.flow if self.has_features else self.tsort, *asked)

    @cached_property
    def enumeration(self) -> Enumeration | None:
        """What enumeration says, where it is cheap enough."""
        if self.has_features:
            return enumerate_segments(self)
        if count_sequences(len(self.flow), len(self.costs.drop)) > _MOST_SEQUENCES:
            return None
        options: dict[str, Any] = {"contiguous": self.contiguous, "gamma": self.gamma, "rules": self.rules}
        return enumerate_alignments(self.flow, *self.costs, **options)

    @cached_property
    def lowered(self) -> ClipCosts:
        """The costs with the constraints written into them here, as ∞."""
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
        videos = [{name: plain(part) for name, part in one._asdict().items()} for one in (self.costs, *self.others)]
        durations = None if self.durations is None else [plain(self.durations.length), plain(self.durations.tail)]
        names = ("seed", "index", "kind", "gamma", "exact", "contiguous", "has_features", "violation")
        return {name: getattr(self, name) for name in names} | {
            "flow": self.flow.to_json(),
            "dtype": str(self.costs.match.dtype),
            "videos": videos,
            "rules": [list(rule) for rule in self.rules],
            "repeat": plain(self.repeat),
            "durations": durations,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Case:
        """Rebuild a case from what :meth:`to_json` returned."""
        given = dict(value)
        flow, dtype = FlowGraph.from_json(given.pop("flow")), given.pop("dtype")
        repeat, durations = given.pop("repeat"), given.pop("durations")

        def array(entries: Any) -> Any:
            return None if entries is None else np.array(entries, dtype=np.float64).astype(dtype)  # numpy reads "inf"

        costs, *others = (
            ClipCosts(array(video["match"]).reshape(len(flow), -1), array(video["drop"]), array(video["skip"]))
            for video in given.pop("videos")
        )
        return cls(
            flow=flow,
            costs=costs,
            others=tuple(others),
            rules=tuple((kind, step, start, stop) for kind, step, start, stop in given.pop("rules")),
            repeat=None if repeat is None else np.array(repeat, np.float64),
            durations=None if durations is None else Durations(*(np.array(part, np.float64) for part in durations)),
            **given,
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


def _disconnected(random: Generator, n_steps: int) -> Edges:
    """Two random graphs side by side."""
    left = int(random.integers(n_steps + 1))
    right = _random(random, n_steps - left, 0.5)
    return _random(random, left, 0.5) + [(a + left, b + left) for a, b in right]


FAMILIES: dict[str, Callable[[Generator, int], Edges]] = {
    "chain": lambda random, n_steps: list(itertools.pairwise(range(n_steps))),
    "bag": lambda random, n_steps: [],
    "tree": _tree,
    "join": _join,
    "threads": _threads,
    "layers": _layers,
    "random": _random,
    "loose": partial(_random, share=0.03),
    "dense": partial(_random, share=0.75),
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


# -- cases of the extended model -----------------------------------------------------------------------------------


def make_feature_case(seed: int, index: int) -> Case:
    """Make case ``index`` of the series ``seed`` of the extended model; the same one for ever."""
    random = np.random.default_rng([seed, index, 8])
    kind = FEATURES[index % len(FEATURES)] if random.random() < 0.5 else "together"
    n_steps = int(random.integers(1, 5))
    n_clips = int(random.integers(1, _MOST_CLIPS[n_steps] + 1))
    exact = bool(random.random() < 0.6)
    dtype = np.float32 if np.random.default_rng([seed, index, 9]).random() < 0.3 else np.float64

    def draw(*shape: int) -> Floats:
        if exact:
            return random.integers(0, 4, shape).astype(np.float64)
        return random.normal(1, 2, shape)

    def draw_costs(*shape: int, never: float = 0.25) -> Floats:
        found = np.abs(draw(*shape))
        found[random.random(shape) < never] = np.inf
        return found

    def has(feature: str, share: float = 0.5) -> bool:
        return kind == feature or (kind == "together" and random.random() < share)

    flow = _draw_feature_flow(
        random, n_steps, has("optional", 0.3), has("alternatives"), has("soft precedence"), bool(random.random() < 0.2)
    )
    match, drop = draw(n_steps, n_clips), draw(n_clips)
    match[random.random(match.shape) < 0.12] = np.inf
    drop[random.random(drop.shape) < 0.06] = np.inf
    skip = None
    if has("skip", 0.6):
        skip = draw(n_steps) - (1 if random.random() < 0.3 else 0)  # not to show a step may be worth something
        skip[random.random(n_steps) < 0.25] = np.inf
    return Case(
        seed=seed,
        index=index,
        kind=kind,
        has_features=True,
        flow=flow,
        costs=ClipCosts(match, drop, skip).astype(dtype),
        repeat=draw_costs(n_steps) if has("repeat", 0.6) else None,
        durations=_draw_durations(random, n_steps, draw_costs) if has("durations") else None,
        # The cost of violating an edge is a logarithm; where sums must be exact it is nothing.
        violation=0.0 if exact else float(random.choice([0.0, 0.5, 1.0, 3.0])),
        gamma=float(random.choice([0.05, 0.3, 1.0, 10.0])),
        rules=(draw_rule(random, n_steps, n_clips),) if random.random() < 0.15 else (),
        exact=exact,
    )


def _draw_feature_flow(
    random: Generator, n_steps: int, optional: bool, alternatives: bool, soft: bool, bag: bool
) -> FlowGraph:
    name = random.permutation(n_steps)
    while True:
        edges = [
            (int(name[a]), int(name[b]), float(random.choice([0.4, 0.7, 0.95])) if soft else 1.0)
            for b in range(n_steps)
            for a in range(b)
            if not bag and random.random() < 0.45
        ]
        edges = [(a, b, 1.0 if random.random() < 0.3 else sure) for a, b, sure in edges]
        groups = []
        if alternatives and n_steps > 1:
            order = random.permutation(n_steps).tolist()
            first = int(random.integers(1, n_steps))
            groups = [[order[:first], order[first : int(random.integers(first + 1, n_steps + 1))]]]
            if n_steps == 4 and random.random() < 0.3:
                groups = [[order[:1], order[1:2]], [order[2:3], order[3:]]]
        try:
            return FlowGraph.from_edges(
                [f"step {step}" for step in range(n_steps)],
                edges,
                optional=[step for step in range(n_steps) if optional and random.random() < 0.5],
                alternatives=groups,
            )
        except GraphError:  # an order between the branches: draw again
            continue


def _draw_durations(random: Generator, n_steps: int, draw_costs: Callable[..., Floats]) -> Durations:
    if random.random() < 0.4:
        return Durations.least(random.integers(1, 4, n_steps), n_steps)
    length = draw_costs(n_steps, int(random.integers(1, 4)), never=0.15)
    length[:, -1] = np.where(np.isfinite(length[:, -1]), length[:, -1], 1.0)
    return Durations(length.astype(np.float64), draw_costs(n_steps, never=0.0).astype(np.float64))
