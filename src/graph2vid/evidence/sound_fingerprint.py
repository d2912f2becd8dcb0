"""What a video sounds like, moment by moment, in a form that survives another encoding, loudness and a little speed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.media import Sound, audio, in_chunks

Vectors: TypeAlias = NDArray[np.float32]
"""[moments, numbers], each of length 1 or, where it is silent, less."""

HOP_SECONDS = 0.2
"""Between moments."""

_RATE = 8000
_HOP = round(HOP_SECONDS * _RATE)
_WINDOW = 2048  # samples of a spectrum
_PER_HOP = 4  # spectra that are averaged to a moment
_BANDS = 24
_LOWEST, _HIGHEST = 150.0, 3800.0  # hertz: what the worst encodings keep
_QUIET = 1e-3  # of the mean power of the file: what is less is silence
_LOCAL = 25  # moments around, of which the mean is taken off: equalisers and loudness are gone then
_FLAT = 2.0  # a moment that differs from those around by less (in nepers, over all bands) is next to silent
_CHUNK_SECONDS = 60


def fingerprint(path: str | os.PathLike[str], *, progress: Callable[[float], None] | None = None) -> Vectors:
    """Describe the sound of a video or audio file in moments of 0.2 s.

    A moment is the logarithm of the power in 24 bands, less its mean over five seconds around.

    Parameters
    ----------
    path : path
        The file; only a minute of its sound is held at a time.
    progress : callable, optional
        Is told the seconds done.

    Returns
    -------
    float32 [moments, 24]
    """
    spectra = []
    for chunk in _whole_hops(audio(path, _RATE)):
        spectra.append(_powers(chunk))
        if progress is not None:
            progress(sum(map(len, spectra)) * HOP_SECONDS)
    power = np.concatenate(spectra) if spectra else np.zeros((0, _BANDS), np.float32)
    if len(power) < 2 or not power.any():
        raise InputError(f"{Path(path)} is silent: there is nothing to know it by")
    levels = np.log(power + _QUIET * power.mean())
    return _of_length_one(levels - _local_mean(levels))


def stacked(moments: Vectors, count: int) -> Vectors:
    """Return at each moment those of the ``count`` around it in one vector."""
    before = count // 2
    padded = np.pad(moments, ((before, count - 1 - before), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, count, axis=0)
    joined: Vectors = np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(len(moments), -1)
    return joined / np.float32(np.sqrt(count))


def _whole_hops(pieces: Iterator[Sound]) -> Iterator[Sound]:
    yield from in_chunks(pieces, _CHUNK_SECONDS * _RATE)


def _powers(sound: Sound) -> Vectors:
    """Return the power per moment and band of a stretch of sound."""
    step = _HOP // _PER_HOP
    count = -(-len(sound) // _HOP)
    padded = np.pad(sound, (_WINDOW // 2, _WINDOW // 2 + count * _HOP - len(sound)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[: count * _HOP : step]
    power = np.square(np.abs(np.fft.rfft(windows * np.hanning(_WINDOW).astype(np.float32), axis=1))) @ _bands()
    mean: Vectors = power.reshape(count, _PER_HOP, _BANDS).mean(axis=1).astype(np.float32)
    return mean


def _bands() -> Vectors:
    """Return how much of each frequency is in each band: triangles, evenly spaced in octaves."""
    hertz = np.fft.rfftfreq(_WINDOW, 1 / _RATE)[:, None]
    edges = np.geomspace(_LOWEST, _HIGHEST, _BANDS + 2)
    rising = (hertz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hertz) / (edges[2:] - edges[1:-1])
    found: Vectors = np.clip(np.minimum(rising, falling), 0.0, None).astype(np.float32)
    return found


def _local_mean(levels: Vectors) -> Vectors:
    sums = np.cumsum(np.pad(levels, ((1, 0), (0, 0))), axis=0, dtype=np.float64)
    first = np.clip(np.arange(len(levels)) - _LOCAL // 2, 0, None)
    last = np.clip(np.arange(len(levels)) + _LOCAL // 2 + 1, None, len(levels))
    mean: Vectors = ((sums[last] - sums[first]) / (last - first)[:, None]).astype(np.float32)
    return mean


def _of_length_one(moments: Vectors) -> Vectors:
    lengths = np.linalg.norm(moments, axis=1, keepdims=True)
    scaled: Vectors = (moments / np.maximum(lengths, _FLAT)).astype(np.float32)
    return scaled
