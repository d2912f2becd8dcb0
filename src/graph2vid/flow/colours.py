"""The colours of steps: the same step has the same colour in every view and export."""

from __future__ import annotations

# Okabe and Ito's colours (black left out), then seven that stand out on white and on black. Over full sight and the
# three forms of colour blindness, no two of the fourteen are nearer than the nearest two of the first seven.
PALETTE = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
    "#7A4C1F", "#993DF5", "#98CD98", "#F20D46", "#0D0DF2", "#A32966", "#631F7A",
)  # fmt: skip

BACKGROUND_COLOUR = "#f1f1f4"
"""Where no step is shown, on white."""

# Beyond fourteen steps colours come again; matplotlib then strikes them through, in another way each time.
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")


def colour_of(step: int) -> str:
    """Return the colour (``#rrggbb``) of a step, by its index in the flow graph; after fourteen they come again."""
    return PALETTE[step % len(PALETTE)]


def hatch_of(step: int) -> str:
    """Return matplotlib's hatch that tells a step from earlier ones with its colour; empty for the first 14."""
    return _HATCHES[step // len(PALETTE) % len(_HATCHES)]


def ink_on(colour: str) -> str:
    """Return black or white, whichever is read better on a colour ``#rrggbb`` (contrast as WCAG 2 defines it)."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#ffffff"


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
