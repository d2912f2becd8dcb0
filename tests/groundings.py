"""Groundings to look at."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from graph2vid.evidence import Cue, read_captions
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.sample import load_narrated


@cache
def spaghetti() -> tuple[Grounding, dict[str, list[tuple[int, float, float]] | Grounding]]:
    """Return a grounding of the sample video from made-up scores, and what to compare it with."""
    sample = load_narrated()
    rng = np.random.default_rng(7)
    scores = rng.normal(0.0, 0.7, (len(sample.flow), int(sample.duration)))
    for step, (start, end) in sample.truth.items():
        scores[step, round(start) : round(end)] += 2.0
    settings = {"scores": scores, "match": "raw", "drop": "percentile:20"}
    found = ground(sample.flow, **settings)
    linear = ground(FlowGraph.chain(sample.flow.steps), **settings)
    truth = [(step, start, end) for step, (start, end) in sample.truth.items()]
    cues = read_captions(sample.files.captions)
    return replace(found, cues=cues, video=str(sample.files.video)), {"Order as written": linear, "Truth": truth}


@cache
def one_hour() -> Grounding:
    """Return a grounding of 30 steps in an hour of which almost every second is talked over."""
    rng = np.random.default_rng(0)
    words = [
        "stir",
        "the sauce",
        "slowly",
        "until",
        "onions",
        "turn golden",
        "and",
        "soft",
        "then add",
        "salt",
        "bread",
    ]
    steps = [" ".join(rng.choice(words, rng.integers(4, 14))) for _ in range(30)]
    edges = [(step, step + 3) for step in range(27)] + [(step, step + 4) for step in range(0, 26, 5)]
    scores = rng.normal(0.0, 1.0, (30, 3600))
    for step in range(30):
        scores[step, 60 + 115 * step : 150 + 115 * step] += 3.0
    found = ground(FlowGraph.from_edges(steps, edges, "A long afternoon"), scores=scores, match="raw", drop=-1.5)
    cues = [Cue(2.4 * at, 2.4 * at + 2.2, " ".join(rng.choice(words, rng.integers(4, 14)))) for at in range(1500)]
    return replace(found, cues=tuple(cues))


@cache
def onions() -> Grounding:
    """Return a grounding of optional and alternative steps and soft precedence, one step of which is shown thrice."""
    steps = [
        ("heat", "Heat the oil in a large frying pan."),
        ("onion", "Chop the onion."),
        ("shallot", "Chop two shallots, if you have no onion."),
        ("soak", "Soak the shallots in cold water."),
        ("fry", "Fry until golden, stirring now and then."),
        ("wine", "Deglaze with white wine."),
        ("toast", "Toast some bread for the side."),
        ("salt", "Season with salt and pepper."),
        ("serve", "Serve."),
    ]
    edges: list[Any] = [("heat", "fry"), ("onion", "fry"), ("shallot", "soak"), ("soak", "fry"), ("fry", "wine", 0.7)]
    edges += [("fry", "salt"), ("salt", "serve"), ("wine", "serve"), ("toast", "serve", 0.6)]
    choices = {"optional": ["wine", "toast"], "alternatives": [["onion", ["shallot", "soak"]]]}
    flow = FlowGraph.from_edges(steps, edges, "Onions with options", **choices)
    scores = np.random.default_rng(3).normal(-1.2, 0.5, (9, 120))
    shown = [("shallot", 5, 12), ("heat", 14, 22), ("soak", 22, 30), ("fry", 32, 45), ("salt", 46, 50), ("fry", 55, 70)]
    for step, start, end in [*shown, ("fry", 80, 88), ("toast", 90, 97), ("serve", 105, 115)]:
        scores[flow.index(step), start:end] += 3.0 if step == "fry" else 2.0
    scores[flow.index("fry"), 45:55] -= 2.0  # it stops, and is begun again
    return ground(flow, scores=scores, match="raw", drop=0.0, skip=1.0, repeat=4.0, margins=True)


def hostile() -> Grounding:
    """Return a grounding whose title, steps and captions try to run scripts."""
    tries = (
        "</script><script>window.hit = 1</script>",
        '"><img src=x onerror="window.hit = 2">',
        "<svg onload='window.hit = 3'>\u2028\u2029",
        "<!--<script>",
    )
    flow = FlowGraph.from_edges([(f"{at}{text}", text) for at, text in enumerate(tries)], [(0, 1), (2, 3)], tries[0])
    scores = np.full((4, 12), -1.0)
    for step in range(4):
        scores[step, 3 * step : 3 * step + 2] = 4.0
    found = ground(flow, scores=scores, match="raw", drop=0.0)
    cues = tuple(Cue(3.0 * at, 3.0 * at + 2, text) for at, text in enumerate(tries))
    return replace(found, cues=cues, video="javascript://window.hit=4", options={"narration": {"source": tries[1]}})
