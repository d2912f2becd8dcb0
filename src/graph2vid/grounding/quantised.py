"""Arrays of real numbers in few signs, for files: eight bits a number between the least and the greatest."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STEPS = 255  # levels above the lowest


def pack(array: NDArray[np.float64]) -> dict[str, Any]:
    """Return a matrix as an object fit for JSON.

    Parameters
    ----------
    array : float array [rows, columns]
        Infinite entries are stored as the least or the greatest finite one.

    Returns
    -------
    dict
        ``shape``; ``range``, the numbers that the bytes 0 and 255 stand for; and ``bytes``, one per entry, row by row,
        in base64. An entry is off by 1/510 of the range at most.
    """
    finite = array[np.isfinite(array)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    half = high / 2 - low / 2  # the whole may be more than a number can hold
    part = (np.clip(array, low, high) / 2 - low / 2) / (half or 1.0)
    levels = np.rint(part * _STEPS).astype(np.uint8)
    return {
        "shape": list(array.shape),
        "range": [low, high],
        "bytes": base64.b64encode(levels.tobytes()).decode("ascii"),
    }


def unpack(value: Any) -> NDArray[np.float64]:
    """Return the matrix that :func:`pack` made an object of; a :class:`ValueError` says what is wrong with it."""
    if not isinstance(value, dict):
        raise ValueError("an object with 'shape', 'range' and 'bytes'")
    shape, ends = value.get("shape"), value.get("range")
    if not (isinstance(shape, list) and len(shape) == 2 and all(type(size) is int and size >= 0 for size in shape)):
        raise ValueError("an object whose 'shape' is two whole numbers")
    if not (isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends)):
        raise ValueError("an object whose 'range' is two numbers")
    low, high = float(ends[0]), float(ends[1])
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise ValueError("an object whose 'range' is two finite numbers, the lower first")
    try:
        levels = np.frombuffer(base64.b64decode(value.get("bytes", ""), validate=True), np.uint8)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("an object whose 'bytes' are base64") from None
    if levels.size != shape[0] * shape[1]:
        raise ValueError(f"an object with {shape[0] * shape[1]} bytes, as its 'shape' says")
    part = levels.reshape(shape) / _STEPS
    return np.clip((1 - part) * low + part * high, low, high)  # exact at both ends
