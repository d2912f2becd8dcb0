"""A video at a glance: small pictures at even distances, and how loud it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.media import audio, frames, opened, upright_image
from graph2vid.footage.remuxing import seek

_RATE = 4000  # samples per second that loudness is measured on
_SHORT = 180.0  # seconds; a longer video is shown at its key frames, without decoding all of it
_MOST_ASPECT = 3.0  # a picture is at most so many times as wide as high


def filmstrip(
    source: str | os.PathLike[str],
    duration: float,
    number: int,
    *,
    height: int = 54,
    progress: Callable[[float, float], None] | None = None,
) -> NDArray[np.uint8]:
    """Return small pictures of a video side by side.

    Parameters
    ----------
    source : path
    duration : float
        Seconds of the video.
    number : int
        Of pictures; the i-th shows the begin of the i-th of so many equal parts. Of a long video it is the key frame
        before that.
    height : int
        Pixels.
    progress : callable, optional
        Called as (done, total).

    Returns
    -------
    uint8 [height, number * width, 3]
        Red, green and blue; a part that cannot be decoded shows the picture before it.
    """
    pictures: list[NDArray[np.uint8] | None] = [None] * number
    for done, (place, picture) in enumerate(_pictures(Path(source), duration, number, height), start=1):
        pictures[place] = picture
        if progress is not None:
            progress(done, number)
    there = [picture for picture in pictures if picture is not None]
    if not there:
        raise InputError(f"no picture of {source} can be decoded")
    known = there[0]
    width = min(max(round(known.shape[1] * height / known.shape[0]), 1), round(_MOST_ASPECT * height))
    strip = np.zeros((height, number * width, 3), dtype=np.uint8)
    for place, found in enumerate(pictures):
        if found is not None:
            known = found
        rows = np.linspace(0, len(known) - 1, height).round().astype(int)
        columns = np.linspace(0, known.shape[1] - 1, width).round().astype(int)
        strip[:, place * width : (place + 1) * width] = known[rows][:, columns]
    return strip


def _pictures(path: Path, duration: float, number: int, height: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield pictures and their places."""
    if duration <= _SHORT:
        for at, picture in frames(path, rate=number / duration, size=height):
            if (place := round(at * number / duration)) < number:
                yield place, picture
        return
    with opened(path) as media:
        if media.video is None:
            raise InputError(f"{path} has no moving picture")
        for place in range(number):
            seek(media, media.video, duration * place / number)
            frame = next(iter(media.decoded(media.video)), None)
            if frame is not None:
                yield place, upright_image(frame, media.pixel_aspect, height)


def loudness(
    source: str | os.PathLike[str],
    duration: float,
    number: int,
    *,
    progress: Callable[[float, float], None] | None = None,
) -> NDArray[np.uint8]:
    """Return how loud a video is in each of ``number`` equal parts of it: the largest amplitude, 0 … 255."""
    peaks = np.zeros(number, dtype=np.float32)
    samples = 0
    for piece in audio(source, _RATE):
        parts = ((samples + np.arange(len(piece))) / (_RATE * duration) * number).astype(int)
        np.maximum.at(peaks, np.minimum(parts, number - 1), np.abs(piece))
        samples += len(piece)
        if progress is not None:
            progress(min(samples / _RATE, duration), duration)
    return np.asarray(np.clip(peaks, 0, 1) * 255).round().astype(np.uint8)
