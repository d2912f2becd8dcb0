"""Make the silent sample anew: ``python -m tools.sample.make_silent [FOLDER] [SEED]``.

The procedure is that of the narrated sample, and so are the pictures; nobody speaks. What is done is written into the
picture in words of its own, beside a title, a list of ingredients and a watermark, and some music plays. The order is
another one than the text's and than that of the narrated sample.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import write_json
from graph2vid.sample.load import FOLDER, TRUTH_KIND, TRUTH_VERSION
from graph2vid.sample.silent import SilentFiles
from tools.sample.scenes import LOOKS, Look, picture

SEED = 3
WIDTH, HEIGHT = 480, 270
FRAME_RATE = 6
RATE = 16_000
"""Samples of sound per second."""

TITLE = "Spaghetti Night"
INGREDIENTS = ("400 g spaghetti", "1 onion", "2 cans tomatoes", "100 g butter", "3 cloves garlic")
WATERMARK = "@tinykitchen"
CLOSING = "Thanks for watching!"

ORDER = ("chop", "butter", "fry", "water", "spread", "sauce", "bake", "pasta", "toss", "serve")
"""A legal order of the steps."""

# What is written at a step: as short as captions are.
WRITTEN = {
    "water": "Bring salted water to a boil",
    "pasta": "Cook spaghetti",
    "chop": "Chop onion",
    "fry": "Fry onion in a little oil",
    "sauce": "Add tomatoes & let simmer",
    "butter": "Mix butter, garlic, parsley",
    "spread": "Spread it on the bread",
    "bake": "Into the oven: bake the bread",
    "toss": "Toss spaghetti with sauce",
    "serve": "Serve with cheese and bread",
}


@dataclass(frozen=True)
class _Shot:
    """What is shown from ``start`` to ``end`` (seconds), and what is written in it, until ``until``."""

    step: str
    start: float
    end: float
    lines: tuple[str, ...]
    until: float


def make_silent(folder: Path, seed: int = SEED) -> SilentFiles:
    """Write a silent video of the narrated sample's procedure into ``folder``, which must be there."""
    files = SilentFiles(folder)
    random = np.random.default_rng([seed, 5])
    shots = _staged(random)
    _encode(files.video, shots, _music(shots[-1].end, random), LOOKS[seed % len(LOOKS)])
    segments = [
        {"step": shot.step, "start": round(shot.start, 3), "end": round(shot.end, 3)} for shot in shots if shot.step
    ]
    about = {"format": TRUTH_KIND, "version": TRUTH_VERSION, "seed": seed, "duration": round(shots[-1].end, 3)}
    write_json(files.truth, about | {"segments": segments})
    return files


def _staged(random: np.random.Generator) -> list[_Shot]:
    """Lay out the shots one after the other, on the grid of the frames."""
    shots: list[_Shot] = []
    now = 0.0

    def add(step: str, seconds: float, lines: tuple[str, ...], shown: float = 1.0) -> None:
        nonlocal now
        end = now + round(seconds * FRAME_RATE) / FRAME_RATE
        shots.append(_Shot(step, now, end, lines, now + shown * (end - now)))
        now = end

    add("", 3.5, (TITLE,))
    add("", 4.0, INGREDIENTS)
    for at, step in enumerate(ORDER):
        add(step, float(random.uniform(5.0, 7.5)), (WRITTEN[step],), float(random.uniform(0.55, 1.0)))
        if at in (3, 7):
            add("", 2.5, ())  # the cook rests
    add("", 3.0, (CLOSING,))
    return shots


def _pictures(shots: list[_Shot], look: Look) -> Iterator[NDArray[np.uint8]]:
    from PIL import Image, ImageDraw, ImageFont

    large, usual, small = (ImageFont.load_default(size) for size in (30, 21, 12))
    shot = 0
    for number in range(round(shots[-1].end * FRAME_RATE)):
        now = number / FRAME_RATE
        while now >= shots[shot].end:
            shot += 1
        this = shots[shot]
        image = Image.fromarray(picture(this.step, now - this.start, 0.0, look)).resize((WIDTH, HEIGHT))
        pen = ImageDraw.Draw(image)
        pen.text(
            (WIDTH - 8, 8), WATERMARK, (235, 235, 235), small, anchor="ra", stroke_width=1, stroke_fill=(90, 90, 90)
        )
        if now < this.until and this.lines:
            if this.lines == INGREDIENTS:
                pen.rectangle((24, 50, 230, 68 + 27 * len(this.lines)), fill=(250, 248, 240))
                pen.multiline_text((36, 58), "\n".join(this.lines), (50, 48, 52), usual, spacing=6)
            elif this.step:
                pen.rectangle((0, HEIGHT - 48, WIDTH, HEIGHT - 12), fill=(32, 34, 40))
                pen.text((WIDTH // 2, HEIGHT - 30), this.lines[0], (255, 255, 255), usual, anchor="mm")
            else:
                about: dict[str, Any] = {"anchor": "mm", "stroke_width": 2, "stroke_fill": (30, 30, 30)}
                pen.text((WIDTH // 2, 74), this.lines[0], (255, 244, 214), large, **about)
        yield np.asarray(image, dtype=np.uint8)


def _music(seconds: float, random: np.random.Generator) -> NDArray[np.float32]:
    """Return a few chords, plucked again and again [samples]."""
    count, beat = round(seconds * RATE), 0.4
    chords = [(0, 4, 7, 12), (9, 12, 16, 21), (5, 9, 12, 17), (7, 11, 14, 19)]
    sound = np.zeros(count + RATE, dtype=np.float64)
    time = np.arange(RATE) / RATE
    for number in range(int(seconds / beat)):
        chord = chords[(number // 8) % len(chords)]
        pitch = 196.0 * 2 ** (chord[int(random.integers(len(chord)))] / 12)
        tone = np.exp(-4.0 * time) * (np.sin(2 * np.pi * pitch * time) + 0.3 * np.sin(4 * np.pi * pitch * time))
        first = round(number * beat * RATE)
        sound[first : first + RATE] += 0.18 * tone * np.minimum(1.0, time / 0.01)
    return np.clip(sound[:count], -1.0, 1.0).astype(np.float32)


def _encode(path: Path, shots: list[_Shot], sound: NDArray[np.float32], look: Look) -> None:
    import av

    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        with av.open(str(temporary), "w", options={"movflags": "faststart"}) as container:
            film: Any = container.add_stream("libx264", rate=FRAME_RATE, options={"crf": "29", "preset": "slow"})
            film.width, film.height, film.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            track: Any = container.add_stream("aac", rate=RATE)
            track.layout, track.bit_rate = "mono", 24_000
            heard = 0
            for number, image in enumerate(_pictures(shots, look)):
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, FRAME_RATE)
                container.mux(film.encode(frame))
                while heard < min((number + 1) * RATE // FRAME_RATE, len(sound)):  # beside the picture, not after it
                    piece = av.AudioFrame.from_ndarray(sound[None, heard : heard + 1024], format="fltp", layout="mono")
                    piece.sample_rate, piece.pts, piece.time_base = RATE, heard, Fraction(1, RATE)
                    container.mux(track.encode(piece))
                    heard += 1024
            container.mux(film.encode(None))
            container.mux(track.encode(None))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    make_silent(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER,
        int(sys.argv[2]) if len(sys.argv) > 2 else SEED,
    )
