"""Embeddings kept on disk, so that what was embedded once is not embedded again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from graph2vid.evidence.embed.interface import Embedder, Frames, Vectors
from graph2vid.evidence.evidence_cache import Cache, content_hash, text_hash


def cached(embedder: Embedder, cache: Cache) -> Embedder:
    """Return an embedder that does what ``embedder`` does and keeps the results in ``cache``.

    Texts are kept list by list, clips by the hash of their video's content; both by the embedder's name and version.
    Clips whose ``content`` is not told are embedded each time.
    """
    given = {field.name: getattr(embedder, field.name) for field in fields(Embedder)}
    return _CachedEmbedder(**given, cache=cache)


@dataclass(frozen=True, eq=False)
class _CachedEmbedder(Embedder):
    cache: Cache | None = None

    def texts(self, texts: Sequence[str]) -> Vectors:
        assert self.cache is not None
        return self.cache.array(
            "texts", self._key(texts=text_hash(*texts)), lambda: super(_CachedEmbedder, self).texts(texts)
        )

    def clips(
        self,
        frames: Frames,
        *,
        clip_seconds: float | None = None,
        n_clips: int | None = None,
        offset: float = 0.0,
        content: str = "",
    ) -> Vectors:
        def make() -> Vectors:
            return super(_CachedEmbedder, self).clips(frames, clip_seconds=seconds, n_clips=n_clips, offset=offset)

        assert self.cache is not None
        seconds = self.clip_seconds if clip_seconds is None else clip_seconds
        if not content or not np.isfinite([seconds, offset]).all():
            return make()
        key = self._key(content=content, clip_seconds=float(seconds), n_clips=n_clips, offset=float(offset))
        return self.cache.array("clips", key, make)

    def _key(self, **rest: object) -> dict[str, object]:
        return {"embedder": self.name, "version": self.version, **rest}


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
    content = ""
    if cache is not None:
        embedder, content = cached(embedder, cache), content_hash(Path(path))
    return embedder.clips(
        _frames(path, embedder.frame_rate, progress),  # read when it is iterated, not before
        clip_seconds=clip_seconds,
        n_clips=n_clips,
        offset=offset,
        content=content,
    )


def _frames(path: str | os.PathLike[str], rate: float, progress: Callable[[float], None] | None) -> Frames:
    from graph2vid.evidence.media import frames

    for seconds, image in frames(path, rate=rate):
        if progress is not None:
            progress(seconds)
        yield seconds, image
