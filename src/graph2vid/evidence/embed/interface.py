"""What an embedder is, how one is had by name, and how its results are kept."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.evidence_cache import Cache, content_hash, text_hash
from graph2vid.registry import Registry

Vectors: TypeAlias = NDArray[np.float32]
"""Embeddings, one per row."""

Image: TypeAlias = NDArray[np.uint8]
"""A picture [H, W, 3]: red, green and blue, 0 to 255."""

Frames: TypeAlias = Iterable[tuple[float, Image]]
"""Pictures with the seconds at which they are seen, in order of time."""

TextFunction: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating[Any]]]
"""From Q texts to embeddings [Q, D]."""

_INSTANT = 1e-6  # in clips or ticks: times that are equal but for rounding


@dataclass(frozen=True)
class Grid:
    """How a video is cut into clips: clip j begins at ``offset + j * clip_seconds`` and lasts ``clip_seconds``.

    Parameters
    ----------
    clip_seconds, offset : float
        Seconds.
    n_clips : int, optional
        By default as many as the frames last.
    """

    clip_seconds: float
    n_clips: int | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not self.wants(0) or not 0 < self.clip_seconds < math.inf or not math.isfinite(self.offset):
            count = "clips" if self.n_clips is None else f"{self.n_clips} clips"
            raise InputError(f"impossible clips: {count} of {self.clip_seconds} s from {self.offset} s")

    def wants(self, clip: int) -> bool:
        """Say whether a clip, of those from 0 on, is one of this grid."""
        return self.n_clips is None or clip < self.n_clips

    def clip_at(self, seconds: float) -> int:
        """Return the clip that holds a time (negative before the first clip)."""
        return math.floor((seconds - self.offset) / self.clip_seconds + _INSTANT)

    def clips_until(self, seconds: float) -> int:
        """Return how many clips begin before a time."""
        return max(math.ceil((seconds - self.offset) / self.clip_seconds - _INSTANT), 0)

    def count(self, end: float) -> int:
        """Return the number of clips of a video whose frames last until ``end`` seconds."""
        return self.clips_until(end) if self.n_clips is None else self.n_clips


ClipFunction: TypeAlias = Callable[[Frames, Grid], NDArray[np.floating[Any]]]
"""From frames to embeddings of clips [N, D]; a clip outside the frames is a row of zeros."""


@dataclass(frozen=True, eq=False)
class Embedder:
    """Turns texts into vectors, or clips of video, or both; called like a function, it embeds texts.

    Models are loaded when they are first used, so that results kept from an earlier run cost no loading.

    Parameters
    ----------
    name : str
        As it was asked for: ``wordllama``, ``clip:FOLDER``, …
    version : str
        Differs whenever the same input might give other vectors (other weights, other preprocessing).
    dimension : int
        D, the length of a vector.
    text_function, clip_function : function, optional
        What does the work; an embedder has at least one of them.
    joint : bool
        Whether the vectors of texts and of clips may be compared with each other.
    comparison : {"cosine", "dot"}
        How vectors are compared.
    frame_rate : float
        Frames per second that :meth:`clips` is to be given.
    clip_seconds : float
        The length of a clip that suits the model best.
    languages : tuple of str
        Codes of the languages whose texts the model knows; empty where nobody told.
    window_seconds : float
        Seconds that a core takes for a clip, where that is long enough to be said beforehand; else 0.
    cache : Cache, optional
        Where results are kept; see :func:`cached`.
    """

    name: str
    version: str
    dimension: int
    text_function: TextFunction | None = None
    clip_function: ClipFunction | None = None
    joint: bool = False
    comparison: Literal["cosine", "dot"] = "cosine"
    frame_rate: float = 2.0
    clip_seconds: float = 1.0
    languages: tuple[str, ...] = ()
    window_seconds: float = 0.0
    cache: Cache | None = None

    def texts(self, texts: Sequence[str]) -> Vectors:
        """Embed Q texts.

        Returns
        -------
        float32 array [Q, D]
            A text that is blank, or in which the model knows no word, is a row of zeros.
        """
        function = self._able(self.text_function, "texts")

        def make() -> Vectors:
            vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
            worded = [at for at, text in enumerate(texts) if text.strip()]
            if worded:
                vectors[worded] = self._checked(function([texts[at] for at in worded]), len(worded), "texts")
            return vectors

        return make() if self.cache is None else self._kept("texts", make, texts=text_hash(*texts))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Embed Q texts, as :meth:`texts` does."""
        return self.texts(texts)

    def clips(
        self,
        frames: Frames,
        *,
        clip_seconds: float | None = None,
        n_clips: int | None = None,
        offset: float = 0.0,
        content: str = "",
    ) -> Vectors:
        """Embed the clips of a video.

        Parameters
        ----------
        frames : iterable of (seconds, uint8 array [H, W, 3])
            At ``frame_rate`` frames per second, in order; of any size, for the embedder scales and crops them as
            its model asks. They are read once and never held all at once.
        clip_seconds : float, optional
            The length of a clip; by default what suits the model.
        n_clips : int, optional
            By default as many as the frames last.
        offset : float
            Where clip 0 begins, in seconds.
        content : str
            The hash of the file that the frames are from. Under it, :func:`cached` keeps what was made.

        Returns
        -------
        float32 array [N, D]
            A clip that lies outside the frames is a row of zeros.
        """
        function = self._able(self.clip_function, "clips")
        grid = Grid(self.clip_seconds if clip_seconds is None else clip_seconds, n_clips, offset)

        def make() -> Vectors:
            return self._checked(function(frames, grid), n_clips, "clips")

        if not content:
            return make()
        seconds = {"clip_seconds": float(grid.clip_seconds), "offset": float(offset)}
        return self._kept("clips", make, content=content, n_clips=n_clips, **seconds)

    def similarity(self, texts: Vectors, clips: Vectors) -> NDArray[np.floating[Any]]:
        """Compare embedded texts [K, D] with embedded clips [N, D] as the model's authors do; [K, N]."""
        if not self.joint:
            why = "has no space that texts and clips share, so its steps cannot be compared with frames"
            raise InputError(f"embedder {self.name!r} {why}; use one that has: {JOINT_FAMILIES}")
        return cosine_similarity(texts, clips) if self.comparison == "cosine" else texts @ clips.T

    def _kept(self, kind: str, make: Callable[[], Vectors], **key: object) -> Vectors:
        if self.cache is None:
            return make()
        return self.cache.array(kind, {"embedder": self.name, "version": self.version, **key}, make)

    def _able(self, function: Any, what: str) -> Any:
        if function is None:
            raise InputError(f"embedder {self.name!r} does not embed {what}")
        return function

    def _checked(self, rows: NDArray[np.floating[Any]], count: int | None, what: str) -> Vectors:
        """Return ``rows`` as float32, if they are one finite vector of the right length for each of ``what``."""
        vectors = np.asarray(rows, dtype=np.float32)
        n = len(vectors) if count is None else count
        if vectors.shape != (n, self.dimension):
            raise InputError(f"embedder {self.name!r} made {vectors.shape} of {n} {what}, not ({n}, {self.dimension})")
        if not np.isfinite(vectors).all():
            raise InputError(f"embedder {self.name!r} made vectors that are not finite: its weights are damaged")
        return vectors


JOINT_FAMILIES = "clip:…, siglip:…, open_clip:…, i3d, s3d:CHECKPOINT,DICTIONARY or array:CLIPS.npy,STEPS.npy"

Loader: TypeAlias = Callable[[str], Embedder]
"""From what follows the colon in an embedder's name (nothing: the empty text) to the embedder."""

EMBEDDERS: Registry[Loader] = Registry("embedder", "graph2vid.embedders")
"""Functions that load an embedder, by the part of its name before the colon."""


@cache
def embedder(name: str) -> Embedder:
    """Return the embedder called ``name``, which is ``FAMILY`` or ``FAMILY:ARGUMENT``; once per process.

    Raises
    ------
    InputError
        There is no such family (the message lists those that there are), or it cannot use the argument.
    MissingDependencyError
        A package is not installed; the message names the extra.
    """
    family, _, argument = name.partition(":")
    return EMBEDDERS.get(family)(argument)


def text_embedder(name: str = "wordllama") -> Embedder:
    """Return the embedder called ``name``, one that embeds texts."""
    chosen = embedder(name)
    chosen._able(chosen.text_function, "texts")
    return chosen


def clip_embedder(name: str) -> Embedder:
    """Return the embedder called ``name``, one that embeds clips of video."""
    chosen = embedder(name)
    if chosen.clip_function is None:
        raise InputError(f"embedder {name!r} embeds texts alone, not frames; for frames use one of: {JOINT_FAMILIES}")
    return chosen


def joint_embedder(name: str) -> Embedder:
    """Return the embedder called ``name``, one whose vectors of texts and of clips may be compared."""
    chosen = clip_embedder(name)
    if chosen.text_function is None:
        hint = f"use one that embeds steps too: {JOINT_FAMILIES}"
        raise InputError(f"embedder {name!r} embeds clips alone, so there is nothing to compare them with; {hint}")
    if not chosen.joint:
        raise InputError(f"embedder {name!r} embeds texts and clips in different spaces: they cannot be compared")
    return chosen


def cached(embedder: Embedder, cache: Cache) -> Embedder:
    """Return an embedder that does what ``embedder`` does and keeps the results in ``cache``.

    Texts are kept list by list, clips by the hash of their video's content; both by the embedder's name and version.
    Clips whose ``content`` is not told are embedded each time.
    """
    return replace(embedder, cache=cache)


def video_clips(
    path: str | os.PathLike[str],
    embedder: Embedder,
    *,
    clip_seconds: float | None = None,
    n_clips: int | None = None,
    offset: float = 0.0,
    cache: Cache | None = None,
    progress: Callable[[float], None] | None = None,
) -> Vectors:
    """Embed the clips of a video file.

    Parameters
    ----------
    path : path
        Any file that :func:`graph2vid.evidence.media.frames` reads.
    embedder : Embedder
        One that embeds clips (see :func:`clip_embedder`).
    clip_seconds, n_clips, offset
        As for :meth:`Embedder.clips`.
    cache : Cache, optional
        Where results are kept. What is there already is neither decoded nor embedded.
    progress : callable, optional
        Is told the time of each frame that is read, in seconds.

    Returns
    -------
    float32 array [N, D]
    """
    from graph2vid.evidence.media import frames

    def read() -> Frames:  # when it is iterated, not before
        for seconds, image in frames(path, rate=embedder.frame_rate):
            if progress is not None:
                progress(seconds)
            yield seconds, image

    content = "" if cache is None else content_hash(Path(path))
    keeping = embedder if cache is None else cached(embedder, cache)
    return keeping.clips(read(), clip_seconds=clip_seconds, n_clips=n_clips, offset=offset, content=content)
