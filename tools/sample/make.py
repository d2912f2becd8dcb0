"""Make the bundled sample anew: ``python -m tools.sample.make [FOLDER]``.

The procedure is ours and so is the video: a script of what is shown when, from which scores are drawn with a
fixed seed. Every step has an appearance made of the things one sees in it, so that steps that share things
look alike; a clip shows the appearance of what the script says, under noise that changes slowly. The video
makes the berries first, beats the eggs before it mixes the flour, and leaves out the resting of the batter.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import write_bytes, write_json
from graph2vid.flow import FlowGraph, Step
from graph2vid.sample.load import FLOW_FILE, FOLDER, SCORES_FILE, TRUTH_FILE, TRUTH_KIND, TRUTH_VERSION

SEED = 20
CLIP_SECONDS = 2.0
VIDEO_SECONDS = 236.0

FLOW = FlowGraph.from_edges(
    [
        Step("flour", "Mix flour, sugar and baking powder in a bowl."),
        Step("eggs", "Beat the eggs with the milk."),
        Step("batter", "Pour the eggs into the flour and stir to a batter."),
        Step("rest", "Let the batter rest."),
        Step("pan", "Melt butter in a hot pan."),
        Step("fry", "Fry the pancakes on both sides."),
        Step("wash", "Wash the berries."),
        Step("crush", "Crush the berries with honey."),
        Step("serve", "Stack the pancakes and spoon the berries over them."),
    ],
    [
        ("flour", "batter"),
        ("eggs", "batter"),
        ("batter", "rest"),
        ("rest", "fry"),
        ("pan", "fry"),
        ("wash", "crush"),
        ("fry", "serve"),
        ("crush", "serve"),
    ],
    title="Pancakes with berries",
)

# What one sees in a step, and how much of it.
THINGS: dict[str, dict[str, float]] = {
    "flour": {"bowl": 0.7, "flour": 1.0, "spoon": 0.4},
    "eggs": {"bowl": 0.7, "eggs": 1.0, "whisk": 0.6},
    "batter": {"bowl": 0.7, "flour": 0.5, "eggs": 0.4, "whisk": 0.6, "dough": 0.8},
    "rest": {"bowl": 0.7, "dough": 0.9, "cloth": 0.8},
    "pan": {"pan": 1.0, "butter": 0.9, "stove": 0.7},
    "fry": {"pan": 1.0, "dough": 0.6, "stove": 0.7, "pancake": 0.9},
    "wash": {"berries": 1.0, "water": 1.0},
    "crush": {"berries": 1.0, "bowl": 0.5, "spoon": 0.6, "honey": 0.7},
    "serve": {"pancake": 1.0, "berries": 0.8, "plate": 0.9, "spoon": 0.3},
}

# What the video shows: (step, start, end) in seconds; the rest shows the cook.
SCRIPT = (
    ("wash", 11.0, 27.0),
    ("crush", 30.0, 51.0),
    ("eggs", 63.0, 80.0),
    ("flour", 84.0, 103.0),
    ("batter", 103.0, 125.0),
    ("pan", 140.0, 152.0),
    ("fry", 154.0, 197.0),
    ("serve", 205.0, 226.0),
)


def make_scores(seed: int = SEED) -> NDArray[np.float32]:
    """Draw the scores of every step in every clip.

    Returns
    -------
    array, float32 [steps, clips]
        Higher is better; rounded, so that the file is the same on every machine.
    """
    random = np.random.default_rng(seed)
    things = sorted({thing for seen in THINGS.values() for thing in seen} | {"cook"})
    looks = np.array([[THINGS[step].get(thing, 0.0) for thing in things] for step in FLOW.ids])
    looks /= np.linalg.norm(looks, axis=1, keepdims=True)
    talk = np.array([float(thing == "cook") for thing in things])

    # The share of each clip that shows each step; what is left over shows the cook.
    clips = round(VIDEO_SECONDS / CLIP_SECONDS)
    begins = CLIP_SECONDS * np.arange(clips)
    share = np.zeros((clips, len(FLOW)))
    for step, start, end in SCRIPT:
        overlap = np.minimum(begins + CLIP_SECONDS, end) - np.maximum(begins, start)
        share[:, FLOW.index(step)] = np.clip(overlap, 0.0, None) / CLIP_SECONDS
    seen = share @ looks + (1.0 - share.sum(axis=1, keepdims=True)) * talk

    # Noise that forgets slowly, as the camera does not jump from clip to clip.
    noise = random.normal(size=(clips, len(things)))
    for clip in range(1, clips):
        noise[clip] = 0.6 * noise[clip - 1] + 0.8 * noise[clip]
    scores = 6.0 * (seen + 0.3 * noise) @ looks.T
    rounded: NDArray[np.float32] = np.round(scores.T, 2).astype(np.float32)
    return rounded


def main(folder: Path) -> None:
    """Write the sample's files into ``folder``."""
    FLOW.save(folder / FLOW_FILE.name)
    buffer = io.BytesIO()
    np.save(buffer, make_scores(), allow_pickle=False)
    write_bytes(folder / SCORES_FILE.name, buffer.getvalue())
    write_json(
        folder / TRUTH_FILE.name,
        {
            "format": TRUTH_KIND,
            "version": TRUTH_VERSION,
            "clip_seconds": CLIP_SECONDS,
            "segments": [{"step": step, "start": start, "end": end} for step, start, end in SCRIPT],
        },
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
