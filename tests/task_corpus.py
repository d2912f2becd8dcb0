"""A made-up corpus of one task, whose videos seldom use the words of its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

STEPS = ["crack the eggs", "toast the bread", "pour the coffee"]
# What people say while they do it; the second has nothing of the words of its step.
SAYINGS = [
    ["now crack an egg into the bowl", "two eggs go in here", "whisk that until smooth"],
    ["the slices go down into the slot", "wait until it pops up golden", "push the lever down"],
    ["pour some coffee into the mug", "hot coffee in the cup", "fill it with coffee"],
]
# Nothing of the words of any step.
FOREIGN = [
    ["knock it on the rim and let it drop", "two of these go in here", "no shells please"],
    SAYINGS[1],
    ["tip the pot slowly now", "right up to the brim", "the smell of it in the morning"],
]
CHATTER = [
    "hello everyone welcome back",
    "like and subscribe to my channel",
    "my dog says hi today",
    "see you next week",
]


def made_up(
    folder: Path, number: int, seed: int = 0, sayings: list[list[str]] = SAYINGS
) -> dict[Path, list[tuple[int, float, float]]]:
    """Write the captions of videos, and return what they show."""
    random = np.random.default_rng(seed)
    found = {}
    for video in range(number):
        cues: list[str] = []
        truth = []
        for step in random.permutation(3):
            cues += random.choice(CHATTER, random.integers(1, 4)).tolist()
            start = 5 * len(cues)
            cues += random.permutation(sayings[step])[: random.integers(2, 4)].tolist()
            truth.append((int(step), start, 5 * len(cues)))
        times = [f"00:{5 * at // 60:02}:{5 * at % 60:02}.000" for at in range(len(cues) + 1)]
        lines = [f"{times[at]} --> {times[at + 1]}\n{cue}\n" for at, cue in enumerate(cues)]
        path = folder / f"v{video}.vtt"
        path.write_text("\n".join(["WEBVTT\n", *lines]))
        found[path] = truth
    return found
