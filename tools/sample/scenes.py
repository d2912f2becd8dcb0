"""Pictures for the narrated sample: a small kitchen, a cook, and what is done at each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import MissingDependencyError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

WIDTH, HEIGHT = 320, 180
_FINER = 3
"""Pictures are drawn this many times larger and made smaller, for smooth edges."""

Colour: TypeAlias = tuple[int, int, int]

WHITE, STEEL, DARK, WOOD = (250, 248, 242), (188, 194, 202), (62, 60, 66), (196, 150, 98)
CREAM, GOLD, GREEN, RED = (246, 236, 206), (222, 170, 84), (96, 152, 74), (206, 62, 44)
YELLOW, CRUST, SKIN = (246, 214, 108), (176, 116, 62), (242, 204, 170)


@dataclass(frozen=True)
class Look:
    """The colours that differ from video to video."""

    wall: Colour
    counter: Colour
    apron: Colour


LOOKS = (
    Look((206, 224, 226), (146, 110, 82), (66, 112, 150)),
    Look((240, 222, 196), (104, 122, 112), (160, 70, 70)),
    Look((218, 212, 232), (128, 100, 92), (84, 120, 86)),
)


class Pen:
    """Draws in the units of the final picture."""

    def __init__(self, draw: ImageDraw) -> None:
        self._draw = draw

    def oval(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """Draw a filled ellipse around (x, y)."""
        self._draw.ellipse([_FINER * v for v in (x - rx, y - ry, x + rx, y + ry)], fill=colour)

    def box(self, x: float, y: float, width: float, height: float, colour: Colour, corner: float = 0.0) -> None:
        """Draw a filled rectangle whose upper left corner is (x, y)."""
        corners = [_FINER * v for v in (x, y, x + width, y + height)]
        self._draw.rounded_rectangle(corners, radius=_FINER * corner, fill=colour)

    def line(self, points: Sequence[tuple[float, float]], width: float, colour: Colour) -> None:
        """Draw a line through points."""
        scaled = [(_FINER * x, _FINER * y) for x, y in points]
        self._draw.line(scaled, fill=colour, width=max(round(_FINER * width), 1), joint="curve")

    def shape(self, points: Sequence[tuple[float, float]], colour: Colour) -> None:
        """Draw a filled polygon."""
        self._draw.polygon([(_FINER * x, _FINER * y) for x, y in points], fill=colour)


def picture(step: str, seconds: float, loudness: float, look: Look) -> NDArray[np.uint8]:
    """Draw what is seen.

    Parameters
    ----------
    step : str
        A step's id; empty for the cook who talks.
    seconds : float
        How long this has been going on.
    loudness : float
        Of the voice, in 0 … 1: opens the cook's mouth.

    Returns
    -------
    uint8 [HEIGHT, WIDTH, 3]
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise MissingDependencyError("drawing the sample needs the package pillow: pip install pillow") from None

    image = Image.new("RGB", (WIDTH * _FINER, HEIGHT * _FINER), look.wall)
    pen = Pen(ImageDraw.Draw(image))
    _kitchen(pen, look)
    if step:
        _STEPS[step](pen, seconds)
    else:
        _cook(pen, seconds, loudness, look)
    small = image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    return np.asarray(small, dtype=np.uint8)


def _shade(colour: Colour, by: float) -> Colour:
    red, green, blue = (min(max(round(value * by), 0), 255) for value in colour)
    return red, green, blue


def _mix(start: Colour, end: Colour, share: float) -> Colour:
    share = min(max(share, 0.0), 1.0)
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(start, end, strict=True))
    return red, green, blue


def _scattered(count: int, seed: int) -> list[tuple[float, float]]:
    """Return points spread over the unit disc, always the same ones."""
    turn = math.pi * (3 - math.sqrt(5))
    radii = [math.sqrt((n + 0.5) / count) for n in range(count)]
    return [(r * math.cos(turn * n + seed), r * math.sin(turn * n + seed)) for n, r in enumerate(radii)]


def _kitchen(pen: Pen, look: Look) -> None:
    for x in range(0, WIDTH, 32):
        pen.line([(x, 60), (x, 122)], 0.7, _shade(look.wall, 0.93))
    for y in range(60, 123, 16):
        pen.line([(0, y), (WIDTH, y)], 0.7, _shade(look.wall, 0.93))
    pen.box(18, 10, 66, 44, WHITE, 2)
    pen.box(21, 13, 60, 38, (176, 212, 238))
    pen.oval(42, 45, 16, 6, (150, 196, 130))
    pen.line([(51, 13), (51, 51)], 2, WHITE)
    pen.box(0, 122, WIDTH, 58, look.counter)
    pen.box(0, 122, WIDTH, 5, _shade(look.counter, 1.25))


def _cook(pen: Pen, seconds: float, loudness: float, look: Look) -> None:
    sway = 2 * math.sin(1.3 * seconds)
    x = 190 + sway
    pen.box(x - 34, 104, 68, 76, WHITE, 14)
    pen.box(x - 22, 112, 44, 68, look.apron, 6)
    pen.box(x - 6, 92, 12, 16, _shade(SKIN, 0.92))
    pen.oval(x, 76, 23, 26, SKIN)
    pen.box(x - 22, 40, 44, 20, WHITE, 4)
    for dx, r in ((-16, 13), (0, 16), (16, 13)):
        pen.oval(x + dx, 36, r, r, WHITE)
    blink = 0.4 if seconds % 3.1 < 0.15 else 2.6
    for dx in (-9, 9):
        pen.oval(x + dx, 73, 2.4, blink, DARK)
    pen.oval(x, 81, 2.5, 3.5, _shade(SKIN, 0.88))
    pen.oval(x, 91, 7, 1 + 6 * loudness, (150, 60, 60))


def _hob(pen: Pen, seconds: float) -> None:
    pen.box(96, 150, 128, 12, DARK, 3)
    for x in range(110, 215, 12):
        pen.oval(x, 150, 3, 4 + math.sin(9 * seconds + x), (92, 142, 226))


def _steam(pen: Pen, seconds: float, x: float, y: float) -> None:
    for wisp in range(3):
        rise = (0.5 * seconds + wisp / 3) % 1.0
        for dot in range(3):
            pen.oval(
                x + 18 * (wisp - 1) + 4 * math.sin(4 * rise + wisp), y - 34 * rise - 4 * dot, 4, 3, (232, 238, 240)
            )


def _pot(pen: Pen, seconds: float, steam: bool) -> None:
    _hob(pen, seconds)
    pen.box(108, 92, 104, 58, STEEL, 6)
    pen.box(98, 102, 12, 6, DARK, 3)
    pen.box(210, 102, 12, 6, DARK, 3)
    pen.oval(160, 92, 52, 13, _shade(STEEL, 0.8))
    pen.oval(160, 93, 48, 11, (158, 204, 226))
    if steam:
        _steam(pen, seconds, 160, 80)
    bubbling = min(seconds / 3, 1.0)
    for n, (x, y) in enumerate(_scattered(14, 2)):
        size = 3.2 * bubbling * ((1.4 * seconds + 0.37 * n) % 1.0)
        pen.oval(160 + 42 * x, 93 + 8 * y, size, size * 0.7, (222, 240, 248))


def _water(pen: Pen, seconds: float) -> None:
    _pot(pen, seconds, steam=seconds > 2)
    if seconds < 2.5:  # salt
        pen.box(196, 34, 18, 26, WHITE, 4)
        for n in range(9):
            fall = (1.6 * seconds + n / 9) % 1.0
            pen.oval(190 - 16 * fall + n % 3, 58 + 34 * fall, 1, 1, WHITE)


def _pasta(pen: Pen, seconds: float) -> None:
    _pot(pen, seconds + 5, steam=True)
    sunk = min(seconds / 4, 1.0)
    for n in range(17):
        x = 160 + 2.6 * (n - 8)
        top = 34 + 48 * sunk + 3 * math.sin(n)
        pen.line([(x + 1.6 * (n - 8) * (1 - 0.4 * sunk), top), (x, 94)], 1.6, YELLOW)
    pen.oval(160, 97, 30, 5, (196, 216, 196))


def _chop(pen: Pen, seconds: float) -> None:
    pen.box(86, 128, 150, 34, WOOD, 5)
    left = max(1.0 - seconds / 7, 0.25)
    pen.oval(136, 124, 26 * left, 22, (196, 140, 170))
    pen.oval(136, 125, 21 * left, 17, (244, 234, 240))
    pen.oval(136, 126, 12 * left, 10, (226, 206, 222))
    for n, (x, y) in enumerate(_scattered(40, 1)):
        if n < 6 * seconds:
            pen.box(192 + 28 * x, 140 + 12 * y, 4, 3.4, (244, 230, 240))
    lift = 16 * abs(math.sin(7 * seconds))
    x = 136 + 26 * left + 2
    pen.shape([(x, 118 - lift), (x + 3, 118 - lift), (x + 3, 146 - lift), (x - 4, 140 - lift)], STEEL)
    pen.box(x - 2, 92 - lift, 7, 28, DARK, 2)


def _pan(pen: Pen, inside: Colour) -> None:
    pen.box(222, 116, 74, 9, DARK, 4)
    pen.oval(160, 124, 74, 34, DARK)
    pen.oval(160, 122, 66, 28, inside)


def _fry(pen: Pen, seconds: float) -> None:
    _hob(pen, seconds)
    _pan(pen, (104, 96, 84))
    colour = _mix((246, 234, 240), GOLD, seconds / 7)
    for n, (x, y) in enumerate(_scattered(48, 3)):
        jiggle = 1.5 * math.sin(11 * seconds + n)
        pen.box(158 + 52 * x + jiggle, 120 + 20 * y - abs(jiggle), 4.4, 3.6, _shade(colour, 0.92 + 0.02 * (n % 5)))
    swing = 30 * math.sin(2 * seconds)
    pen.line([(160 + swing, 124), (206 + swing, 52)], 5, WOOD)
    pen.oval(160 + swing, 124, 9, 6, WOOD)


def _sauce(pen: Pen, seconds: float) -> None:
    _hob(pen, seconds)
    _pan(pen, _mix((150, 110, 80), RED, seconds / 2.5))
    for n, (x, y) in enumerate(_scattered(16, 5)):
        size = 4.5 * ((seconds + 0.29 * n) % 1.0)
        pen.oval(160 + 52 * x, 122 + 20 * y, size, size * 0.6, _shade(RED, 1.2))
    for n in range(4):  # tomatoes on their way
        fall = seconds * 1.2 - 0.5 * n
        if 0 < fall < 1:
            pen.oval(130 + 20 * n, 30 + 88 * fall, 11, 10, RED)
            pen.oval(130 + 20 * n, 21 + 88 * fall, 4, 2, GREEN)


def _bowl(pen: Pen, inside: Colour) -> None:
    pen.shape([(96, 112), (224, 112), (200, 160), (120, 160)], (112, 156, 196))
    pen.oval(160, 112, 64, 17, (136, 178, 214))
    pen.oval(160, 113, 58, 14, inside)


def _butter(pen: Pen, seconds: float) -> None:
    _bowl(pen, (222, 232, 240))
    pen.oval(160, 113, 46, 11, (250, 226, 140))
    for n, (x, y) in enumerate(_scattered(26, 4)):
        turn = 0.8 * seconds
        u, v = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
        if n < 4 + 4 * seconds:
            pen.oval(160 + 42 * u, 113 + 9 * v, 2, 1.3, GREEN if n % 2 else WHITE)
    angle = 3 * seconds
    tip = (160 + 30 * math.cos(angle), 113 + 7 * math.sin(angle))
    pen.line([tip, (tip[0] + 26, 44)], 4.5, WOOD)


def _slice(pen: Pen, x: float, y: float, crumb: Colour) -> None:
    pen.box(x - 26, y - 18, 52, 36, CRUST, 9)
    pen.box(x - 23, y - 15, 46, 30, crumb, 7)


def _spread(pen: Pen, seconds: float) -> None:
    pen.box(56, 126, 208, 40, WOOD, 5)
    for n in range(3):
        x = 96 + 64 * n
        _slice(pen, x, 144, (244, 222, 176))
        covered = min(max(seconds / 2.2 - n, 0.0), 1.0)
        if covered:
            pen.box(x - 21, 131, 42 * covered, 26, (250, 226, 140), 5)
            for u, v in _scattered(round(9 * covered), n):
                pen.oval(x - 21 + 21 * covered * (1 + u * 0.8), 144 + 9 * v, 1.4, 1.1, GREEN)
    at = 76 + min(29 * seconds, 170) + 8 * math.sin(6 * seconds)
    pen.shape([(at, 138), (at + 6, 146), (at + 40, 108), (at + 36, 104)], STEEL)
    pen.line([(at + 38, 106), (at + 62, 80)], 7, DARK)


def _bake(pen: Pen, seconds: float) -> None:
    pen.box(92, 42, 136, 120, (214, 214, 216), 5)
    for x in (112, 136, 184, 208):
        pen.oval(x, 56, 5, 5, DARK)
    pen.box(104, 70, 112, 78, DARK, 4)
    glow = 0.9 + 0.1 * math.sin(5 * seconds)
    pen.box(110, 78, 100, 62, _shade((236, 148, 66), glow), 3)
    pen.line([(112, 124), (208, 124)], 2, DARK)
    for n in range(2):
        _slice(pen, 136 + 46 * n, 108, _mix((250, 226, 140), GOLD, seconds / 7))
    pen.box(116, 72, 88, 4, STEEL, 2)


def _noodles(pen: Pen, x: float, y: float, width: float, height: float, turn: float, colour: Colour) -> None:
    for n in range(16):
        points = []
        for k in range(13):
            angle = 2 * math.pi * k / 12 + n + turn
            reach = 0.35 + 0.62 * ((n * 0.618) % 1.0)
            points.append((x + width * reach * math.cos(angle), y + height * reach * math.sin(angle + 0.3 * n)))
        pen.line(points, 1.8, _shade(colour, 0.9 + 0.04 * (n % 5)))


def _toss(pen: Pen, seconds: float) -> None:
    _bowl(pen, (204, 220, 232))
    pen.oval(160, 112, 46, 12, _mix(YELLOW, (226, 128, 70), seconds / 6))
    _noodles(pen, 160, 108, 50, 14, 1.5 * seconds, _mix(YELLOW, (230, 132, 74), seconds / 6))
    lift = 18 * abs(math.sin(2.4 * seconds))
    for side in (-1, 1):
        pen.line([(160 + 10 * side, 110 - lift), (160 + 20 * side, 46 - lift)], 4, STEEL)
    _noodles(pen, 160, 104 - lift, 14, 8, seconds, (232, 150, 84))


def _serve(pen: Pen, seconds: float) -> None:
    pen.oval(146, 144, 84, 26, WHITE)
    pen.oval(146, 142, 62, 18, _shade(WHITE, 0.93))
    _noodles(pen, 146, 132, 46, 18, 0.4, YELLOW)
    pen.oval(146, 122, 26, 10, RED)
    for n, (x, y) in enumerate(_scattered(34, 6)):
        if n < 6 * seconds:
            pen.box(144 + 34 * x, 120 + 12 * y, 4.5, 1.8, CREAM)
    for n in range(10):
        fall = (1.3 * seconds + 0.13 * n) % 1.0
        pen.box(120 + 6 * n, 40 + 76 * fall, 4, 1.6, CREAM)
    _slice(pen, 262, 142, GOLD)


_STEPS: dict[str, Callable[[Pen, float], None]] = {
    "water": _water,
    "pasta": _pasta,
    "chop": _chop,
    "fry": _fry,
    "sauce": _sauce,
    "butter": _butter,
    "spread": _spread,
    "bake": _bake,
    "toss": _toss,
    "serve": _serve,
}
