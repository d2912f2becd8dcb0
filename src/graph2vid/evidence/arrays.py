"""Arrays handed in: read, checked with messages that name the place, and compared by cosine."""

from __future__ import annotations

import math
import os
import tokenize
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid._arrays import Floats as Floats  # handed on: part of what these functions say
from graph2vid._arrays import as_floats, real
from graph2vid._files import naming
from graph2vid._one_thread import one_thread
from graph2vid.errors import FormatError, InputError

_LENGTHS = 0.05  # clips and videos of which more is missing do not belong together


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read one numeric array from a ``.npy`` file; nothing is ever unpickled.

    Raises
    ------
    FormatError
        The file is not a ``.npy`` file, is cut short, or holds something other than real numbers.
    Graph2VidError
        The file cannot be read.
    """
    path = Path(path)
    try:
        with naming(path), path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise FormatError(f"{path} is not a .npy file; write one with numpy.save")
            file.seek(0)
            if not _is_whole(file):  # a damaged header must not ask for more memory than the file can fill
                raise FormatError(f"{path} is not a readable .npy array: it is shorter than its header says")
            file.seek(0)
            array = np.load(file, allow_pickle=False)
    except FormatError:
        raise
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, KeyError, tokenize.TokenError) as error:
        reason = str(error).split("\n", 1)[0][:200]
        raise FormatError(f"{path} is not a readable .npy array: {reason}") from error
    return real(array, str(path), FormatError)


def _is_whole(file: BinaryIO) -> bool:
    """Say whether the header of a ``.npy`` file and the data that it promises are all there."""
    version = np.lib.format.read_magic(file)
    start, size = file.tell(), file.seek(0, os.SEEK_END)
    file.seek(start)
    if int.from_bytes(file.read(2 if version == (1, 0) else 4), "little") > size:
        return False
    file.seek(start)
    if version > (2, 0):  # for field names, which arrays of numbers do not have
        return True
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    promised = math.prod(shape) * dtype.itemsize
    return bool(dtype.hasobject) or promised <= size - file.tell()


def as_matrix(value: ArrayLike, name: str, axes: tuple[str, str]) -> Floats:
    """Return ``value`` as a non-empty matrix whose two axes are called ``axes``."""
    array = as_floats(value, name)
    if array.ndim != 2:
        raise InputError(f"{name} must have two axes [{axes[0]}, {axes[1]}], not shape {array.shape}")
    for axis, what in enumerate(axes):
        if array.shape[axis] == 0:
            raise InputError(f"{name} has shape {array.shape}: there are no {what} (axis {axis} is empty)")
    return array


def as_vector(value: ArrayLike, name: str, length: int, what: str) -> Floats:
    """Return ``value`` as a vector with one number per ``what`` (``length`` of them)."""
    array = as_floats(value, name)
    if array.shape != (length,):
        raise InputError(f"{name} must have shape ({length},), one number per {what}, not {array.shape}")
    return array


def check_clips(
    name: str, n_clips: int, clip_seconds: float, offset: float, *, duration: float | None, last: float = 0.0
) -> None:
    """Refuse clips that end over 5% (and over one clip) before or after their video does.

    Parameters
    ----------
    name : str
        The video, for the message.
    n_clips : int
    clip_seconds, offset : float
        Seconds.
    duration : float or None
        Length of the video in seconds, where known.
    last : float
        Where the last annotation ends; the video may go on after it.
    """
    end = offset + n_clips * clip_seconds
    bounds = [("the video lasts", duration, True), ("an annotation ends at", last, False)]
    for words, seconds, is_end in bounds:
        if seconds is None:
            continue
        slack = max(_LENGTHS * seconds, clip_seconds)
        if seconds - end > slack or (is_end and end - seconds > slack):
            fitting = f"clip_seconds={(seconds - offset) / n_clips:.3g}"
            raise InputError(
                f"{name}: {n_clips:,} clips of {clip_seconds:g} s end at {end:.6g} s, but {words} {seconds:.6g} s: "
                f"{fitting} would fit" + ("" if is_end else " at the least")
            )


def refuse(bad: NDArray[np.bool_], array: NDArray[Any], name: str, axes: tuple[str, ...], rule: str) -> None:
    """Raise an error that names the first place where ``bad`` holds, if there is one.

    Parameters
    ----------
    bad : bool array
        Where ``array`` is not usable.
    axes : tuple of str
        What one entry along each axis is: ``("step", "clip")``.
    rule : str
        What is asked for, in words.
    """
    if not bad.any():
        return
    place = np.unravel_index(int(np.argmax(bad)), bad.shape)
    where = ", ".join(f"{axis} {int(index)}" for axis, index in zip(axes, place, strict=True))
    count = int(bad.sum())
    others = f"; {count} such values in all" if count > 1 else ""
    raise InputError(f"{name} is {array[place]} at {where} (counted from 0{others}): {rule}")


@one_thread()
def cosine_similarity(steps: ArrayLike, clips: ArrayLike) -> Floats:
    """Compare embeddings of steps with embeddings of clips by their cosine.

    Parameters
    ----------
    steps : array [K, D]
        One embedding per step.
    clips : array [N, D]
        One embedding per clip.

    Returns
    -------
    array [K, N]
        Cosines in [-1, 1], float32 if both inputs are (computed in float64). A vector of zeros, which has no
        direction, has cosine 0 with everything.
    """
    left = as_matrix(steps, "steps", ("steps", "dimensions"))
    right = as_matrix(clips, "clips", ("clips", "dimensions"))
    if left.shape[1] != right.shape[1]:
        sizes = f"{left.shape[1]} is not {right.shape[1]}"
        raise InputError(f"steps {left.shape} and clips {right.shape} must agree on axis 1 (embedding size): {sizes}")
    refuse(~np.isfinite(left), left, "steps", ("step", "dimension"), "embeddings must be finite")
    refuse(~np.isfinite(right), right, "clips", ("clip", "dimension"), "embeddings must be finite")
    cosine = np.clip(_unit_rows(left) @ _unit_rows(right).T, -1.0, 1.0)
    return cosine.astype(np.result_type(left, right), copy=False)


def _unit_rows(rows: Floats) -> NDArray[np.float64]:
    """Scale each row to length 1; rows of zeros stay."""
    rows = rows.astype(np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest > 0, largest, 1.0)  # first, so that squares neither overflow nor vanish
    length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = rows / np.where(length > 0, length, 1.0)
    return unit


def distinct_rows(rows: Floats) -> NDArray[np.int64]:
    """Number the rows of a matrix, in their order, so that identical rows, and only those, have one number.

    Returns
    -------
    int array [K]
    """
    numbers: dict[bytes, int] = {}
    same_zeros = np.ascontiguousarray(rows + 0.0)  # -0 and 0 are the same
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in same_zeros], dtype=np.int64)
