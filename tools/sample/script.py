"""The narrated sample's procedure, and what its cook says and does: drawn anew for every seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graph2vid.flow import FlowGraph, Step
from graph2vid.tsort import TSortGraph, random_sorts

FLOW = FlowGraph.from_edges(
    [
        Step("water", "Boil a large pot of salted water."),
        Step("pasta", "Cook the spaghetti in the boiling water."),
        Step("chop", "Chop the onion."),
        Step("fry", "Fry the onion in olive oil."),
        Step("sauce", "Add the tomatoes to the onion and simmer the sauce."),
        Step("butter", "Mix the soft butter, garlic and parsley."),
        Step("spread", "Spread the butter mixture on the bread."),
        Step("bake", "Bake the bread in the oven."),
        Step("toss", "Toss the spaghetti with the sauce."),
        Step("serve", "Serve the spaghetti with grated cheese and the bread."),
    ],
    [
        ("water", "pasta"),
        ("pasta", "toss"),
        ("chop", "fry"),
        ("fry", "sauce"),
        ("sauce", "toss"),
        ("butter", "spread"),
        ("spread", "bake"),
        ("bake", "serve"),
        ("toss", "serve"),
    ],
    title="Spaghetti with garlic bread",
)

# What may be said at a step.
SAID: dict[str, tuple[str, ...]] = {
    "water": (
        "Let's fill a big pot with water, add some salt, and bring it to a boil.",
        "I put a large pot of salted water on the stove, and wait until it boils.",
    ),
    "pasta": (
        "The water is boiling, so cook the spaghetti for nine minutes.",
        "In goes the spaghetti. Let it cook in the boiling water until it is tender.",
    ),
    "chop": ("Next, chop the onion into very small pieces.", "I take one onion, peel it, and chop it finely."),
    "fry": (
        "Fry the onion in olive oil, and keep stirring.",
        "Now the onion goes into the pan, and we fry it in a little olive oil.",
    ),
    "sauce": (
        "Add the tomatoes, and let the sauce simmer on a low heat.",
        "Time to add the tomatoes. Stir, and let the sauce simmer gently.",
    ),
    "butter": (
        "In this bowl, I mix the soft butter with chopped garlic and fresh parsley.",
        "Mix the soft butter with the garlic, and plenty of parsley.",
    ),
    "spread": (
        "Now I spread the garlic butter on the slices of bread.",
        "Spread all of the butter on the bread, nice and thick.",
    ),
    "bake": (
        "Put the bread in the oven, and bake it until it is crisp.",
        "The bread goes into the hot oven, where it bakes for ten minutes.",
    ),
    "toss": (
        "Drain the spaghetti, and toss it with the tomato sauce.",
        "Toss the hot spaghetti with the sauce, until it is covered all over.",
    ),
    "serve": (
        "And finally, serve the spaghetti with grated cheese and the warm bread.",
        "We serve the spaghetti with a lot of grated cheese, and the bread on the side.",
    ),
}

# Steps as someone may say them who uses quite other words; one of them is used per video.
OTHER_WORDS = {
    "fry": "In a hot skillet with oil, the small pieces turn soft and golden.",
    "water": "The kettle is too small for this, so I heat three quarts in the largest one I own.",
    "bake": "Slide the tray inside, close the door, and let the heat make it golden and crisp.",
    "sauce": "Two cans of these red beauties go on top, and then it all bubbles for a while.",
}

OPENING = (
    "Hello everybody, and welcome back to my little kitchen.",
    "Today we are making my favorite Sunday dinner.",
)
TALK = (
    "My grandmother made this every week, and nobody ever complained.",
    "Please be careful with your fingers, I know what I am talking about.",
    "While we wait, let me thank all of you for your kind letters.",
    "My neighbor just called, he wants to come over tonight.",
    "By the way, you can find the list of everything you need below the video.",
    "It has been raining here for three days, so this is just what I need.",
    "My cat is watching me from the window again.",
    "I always play some music at this point, but today you only get to hear me.",
)
CLOSING = ("That's all for today.", "Thank you for watching, and see you next week.")

TALKS = 5
"""How often the cook talks about something else between the steps."""
LEAST_INVERSIONS = 17
"""Of the 45 pairs of steps, how many at least are shown the other way round than they are written."""


@dataclass(frozen=True)
class Part:
    """A piece of the video: what is shown, what is said with it, and how long it goes on.

    Attributes
    ----------
    step : str
        A step's id; empty while the cook talks.
    sentences : tuple of str
        Said one after the other.
    lead : float
        Seconds from the beginning of the picture to that of the first sentence; negative if it is said before.
    rest : float
        Seconds that the picture goes on after the last sentence.
    """

    step: str
    sentences: tuple[str, ...]
    lead: float
    rest: float


@dataclass(frozen=True)
class Script:
    """What the video is to be: its parts in order, the step that is said in other words, and the voice."""

    parts: tuple[Part, ...]
    other_words: str
    voice: str
    words_per_minute: int
    pitch: int


VOICES = ("en-us+f3", "en-us+m3", "en-us+f2")


def write_script(seed: int) -> Script:
    """Write the script of a video: steps in a legal order that is not the written one, with talk between them."""
    random = np.random.default_rng([seed, 7])
    order = _order(random)
    other = list(OTHER_WORDS)[seed % len(OTHER_WORDS)]
    talk = iter(random.permutation(len(TALK)))
    # Never just before the last step, and never twice in a row.
    breaks = set(random.choice(np.arange(1, len(order) - 1), size=TALKS, replace=False).tolist())
    parts = [Part("", OPENING, 0.8, 0.7)]
    for at, step in enumerate(order):
        if at in breaks:
            parts.append(Part("", (TALK[next(talk)],), 0.5, float(random.uniform(0.4, 1.2))))
        said = OTHER_WORDS[step] if step == other else str(random.choice(SAID[step]))
        lead, rest = float(random.uniform(-0.3, 0.6)), float(random.uniform(1.2, 3.0))
        parts.append(Part(step, (said,), lead, rest))
    parts.append(Part("", CLOSING, 0.5, 1.2))
    speed, pitch = int(random.integers(138, 150)), int(random.integers(44, 54))
    return Script(tuple(parts), other, VOICES[seed % len(VOICES)], speed, pitch)


def _order(random: np.random.Generator) -> list[str]:
    tsort = TSortGraph.compile(FLOW)
    while True:
        (order,) = random_sorts(tsort, 1, random)
        if _inversions(order) >= LEAST_INVERSIONS:
            return [FLOW.ids[step] for step in order]


def _inversions(order: Sequence[int]) -> int:
    return sum(early > late for at, early in enumerate(order) for late in order[at + 1 :])
