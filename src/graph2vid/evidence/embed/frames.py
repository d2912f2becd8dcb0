"""From frames to clips: pictures one by one, or windows of many frames in a row. Neither holds a video whole."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError, needing
from graph2vid.evidence.embed.interface import Frames, Grid, Image, Vectors

Prepare: TypeAlias = Callable[[Image], NDArray[Any]]
"""From a frame to what the model takes."""

EmbedBatch: TypeAlias = Callable[[Sequence[Any]], NDArray[np.floating[Any]]]
"""From B prepared pictures, or B windows of them, to embeddings [B, D]."""


def clips_by_frame(
    frames: Frames, grid: Grid, prepare: Prepare, embed: EmbedBatch, *, rate: float, dimension: int, batch: int = 32
) -> Vectors:
    """Embed each frame by itself; a clip is the mean of its frames, of which each counts alike, at length 1.

    A clip in which no frame begins shows what the last frame before it shows. Each frame lasts ``1 / rate`` seconds.
    """
    total: dict[int, NDArray[np.float64]] = {}
    latest: dict[int, NDArray[np.float64]] = {}

    def add(clips: list[int], pictures: list[NDArray[Any]]) -> None:
        for clip, vector in zip(clips, unit_rows(embed(pictures)), strict=True):
            total[clip] = total.get(clip, 0.0) + vector
            latest[clip] = vector

    clips: list[int] = []
    pictures: list[NDArray[Any]] = []
    end = -math.inf
    for seconds, picture in _prepared(frames, prepare):
        end = seconds + 1.0 / rate
        clip = grid.clip_at(seconds)
        if not grid.wants(clip):
            break
        clips.append(clip)
        pictures.append(picture)
        if len(pictures) == batch:
            add(clips, pictures)
            clips, pictures = [], []
    if pictures:
        add(clips, pictures)
    count = _count(grid, end)
    rows = np.zeros((count, dimension))
    seen = None
    for clip in range(min([0, *total]), min(count, grid.clips_until(end))):
        seen = latest.get(clip, seen)
        if clip >= 0 and seen is not None:
            rows[clip] = total.get(clip, seen)
    return unit_rows(rows).astype(np.float32)


def clips_by_window(
    frames: Frames,
    grid: Grid,
    prepare: Prepare,
    embed: EmbedBatch,
    *,
    rate: float,
    length: int,
    dimension: int,
    batch: int = 4,
) -> Vectors:
    """Embed windows of ``length`` frames in a row, centred on the clips.

    A clip longer than a window is the mean of several, side by side and evenly spread. A window that would reach
    beyond the video is moved into it; a video shorter than a window is filled up with black frames at its end.
    """
    per_clip = max(math.ceil(grid.clip_seconds * rate / length - 1e-6), 1)

    def begins(window: int) -> int:
        """Return the frame at which a window begins: frame k is seen at k / rate seconds."""
        middle = grid.offset + (window + 0.5) * grid.clip_seconds / per_clip
        return round(middle * rate - length / 2)

    total: dict[int, NDArray[np.float64]] = {}
    waiting: list[tuple[NDArray[Any], list[int]]] = []  # windows and the clips that they belong to

    def flush() -> None:
        vectors = embed([pictures for pictures, _ in waiting])
        for (_, clips), vector in zip(waiting, vectors, strict=True):
            for clip in clips:
                total[clip] = total.get(clip, 0.0) + np.asarray(vector, dtype=np.float64) / per_clip
        waiting.clear()

    recent: deque[NDArray[Any]] = deque(maxlen=length)
    first = last = window = 0
    end = -math.inf
    for last, picture in _steady(frames, rate, prepare):
        if not recent:
            first = last
            window = per_clip * max(grid.clip_at(first / rate), 0)
        end = (last + 1) / rate
        recent.append(picture)
        complete = []
        while max(begins(window), first) + length <= last + 1 and grid.wants(window // per_clip):
            complete.append(window // per_clip)
            window += 1
        if complete:
            waiting.append((np.stack(recent), complete))
            if len(waiting) == batch:
                flush()
        if not grid.wants(window // per_clip):
            break
    count = _count(grid, end)
    left = [at // per_clip for at in range(window, per_clip * min(count, grid.clips_until(end)))]
    if left:
        black = np.zeros_like(recent[-1])
        waiting.append((np.stack([*recent, *[black] * (length - len(recent))]), left))
    if waiting:
        flush()
    rows = np.zeros((count, dimension), dtype=np.float32)
    for clip, vector in total.items():
        rows[clip] = vector
    return rows


def _count(grid: Grid, end: float) -> int:
    count = grid.count(end) if math.isfinite(end) else 0
    if not count:
        raise InputError("there are no frames to embed")
    return count


def _prepared(frames: Frames, prepare: Prepare) -> Iterator[tuple[float, NDArray[Any]]]:
    """Check and prepare frames; one that comes several times in a row is prepared once."""
    before: Image | None = None
    picture: NDArray[Any] | None = None
    for seconds, image in frames:
        if not math.isfinite(seconds):
            raise InputError(f"a frame is said to be seen at {seconds} seconds")
        if image is not before or picture is None:
            if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
                found = f"{image.dtype} {image.shape}"
                raise InputError(f"the frame at {seconds:g} s must be uint8 [height, width, 3], not {found}")
            before, picture = image, prepare(image)
        yield seconds, picture


def _steady(frames: Frames, rate: float, prepare: Prepare) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield one prepared frame for each ``1 / rate`` seconds, numbered by time; a gap shows the frame before it."""
    before: NDArray[Any] | None = None
    due = 0
    for seconds, picture in _prepared(frames, prepare):
        number = round(seconds * rate)
        if before is not None:
            if number < due:  # one too many
                continue
            yield from ((missing, before) for missing in range(due, number))
        yield number, picture
        before, due = picture, number + 1


def unit_rows(rows: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Scale each row to length 1; rows of zeros stay."""
    rows = np.asarray(rows, dtype=np.float64)
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = rows / np.where(length > 0, length, 1.0)
    return unit


def square_crop(image: Image, size: int) -> Image:
    """Cut the largest square out of the middle of a frame and scale it to ``size`` × ``size`` pixels, bicubically.

    Scaling down averages: the filter is widened as far as the picture shrinks.
    """
    with needing("embedding frames needs the package pillow", "embed"):
        from PIL import Image as Pillow
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = image[top : top + side, left : left + side]
    if side == size:
        return square
    picture = Pillow.fromarray(square).resize((size, size), Pillow.Resampling.BICUBIC)
    return np.asarray(picture)
