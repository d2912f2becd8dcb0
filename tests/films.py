"""Small films, made for the tests: frame i is grey of level 4 (i + 1), and sound is a click at whole seconds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLOCK = Fraction(1, 1000)
"""Times of frames are whole multiples of this."""


def clicks(seconds: float, rate: int, first: float = 0.5) -> NDArray[np.float32]:
    """Return silence with a click of 10 ms at ``first``, ``first + 1``, … seconds."""
    sound = np.zeros(round(seconds * rate), dtype=np.float32)
    for at in np.arange(first, seconds, 1.0):
        start = round(at * rate)
        sound[start : start + rate // 100] = 0.9 * np.sign(np.sin(np.arange(rate // 100)))[: len(sound[start:])]
    return sound


def film(
    path: Path,
    times: Sequence[float] = (),
    *,
    sound: NDArray[np.float32] | None = None,
    sound_start: float = 0.0,
    rate: int = 44_100,
    images: Sequence[NDArray[np.uint8]] | None = None,
    codec: str = "libx264",
    sound_codec: str = "aac",
    options: dict[str, str] | None = None,
    title: str = "",
) -> Path:
    """Write a film whose frames begin at ``times`` (seconds) and whose sound begins at ``sound_start``."""
    import av

    with av.open(str(path), "w", container_options=options or {}) as container:
        container.metadata["title"] = title
        picture: Any = None
        if times:
            picture = container.add_stream(codec, rate=25)
            first = np.zeros((32, 48, 3), dtype=np.uint8) if images is None else images[0]
            picture.height, picture.width = first.shape[:2]
            picture.pix_fmt = "yuv420p"
            picture.codec_context.time_base = CLOCK
        track: Any = None
        if sound is not None:
            track = container.add_stream(sound_codec, rate=rate)
            track.layout = "mono"
        for at, seconds in enumerate(times):
            image = np.full((32, 48, 3), 4 * (at + 1), dtype=np.uint8) if images is None else images[at]
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = round(seconds / CLOCK), CLOCK
            frame.duration = 100 if at + 1 == len(times) else round((times[at + 1] - seconds) / CLOCK)
            container.mux(picture.encode(frame))
        if picture is not None:
            container.mux(picture.encode(None))
        if track is not None and sound is not None:
            for start in range(0, len(sound), 1024):
                piece = sound[start : start + 1024]
                heard = av.AudioFrame.from_ndarray(piece[None], format="fltp", layout="mono")
                heard.sample_rate = rate
                heard.pts, heard.time_base = start + round(sound_start * rate), Fraction(1, rate)
                container.mux(track.encode(heard))
            container.mux(track.encode(None))
    return path


def level(image: NDArray[np.uint8]) -> int:
    """Return which frame of a film an image is."""
    return round(float(image.mean()) / 4) - 1


def onsets(sound: NDArray[np.float32], rate: int) -> NDArray[np.float64]:
    """Return when clicks begin, in seconds."""
    loud = np.flatnonzero(np.abs(sound) > 0.3)
    firsts = loud[np.diff(loud, prepend=-rate) > rate // 10]
    return firsts / rate


def long_film(path: Path, seconds: int) -> Path:
    """Write a film of one frame a second, whose left part grows."""
    import av

    with av.open(str(path), "w") as container:
        picture: Any = container.add_stream("libx264", rate=1)
        picture.width, picture.height, picture.pix_fmt = 160, 90, "yuv420p"
        picture.options = {"preset": "ultrafast", "g": "60"}
        for at in range(seconds):
            image = np.full((90, 160, 3), 40, np.uint8)
            image[:, : max(1, 160 * at // seconds)] = (200, 120, at % 255)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, 1)
            container.mux(picture.encode(frame))
        container.mux(picture.encode(None))
    return path
