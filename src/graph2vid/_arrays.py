"""Arrays handed in by callers: real numbers in single or double precision, with errors that name the array."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graph2vid.errors import InputError

Floats: TypeAlias = NDArray[np.floating[Any]]
"""An array of float32 or float64."""


def real(array: NDArray[Any], name: str, error: type[InputError] = InputError) -> NDArray[Any]:
    """Return an array of real numbers as it is; anything else is an error."""
    if array.dtype.kind not in "fiub":
        raise error(f"{name} must hold real numbers, not {array.dtype}")
    return array


def as_floats(value: ArrayLike, name: str) -> Floats:
    """Return ``value`` as float32 (of float16 and float32) or float64 (of everything else)."""
    if np.ma.is_masked(value):
        raise InputError(f"{name} is a masked array: fill what is masked, for example with +inf where it is forbidden")
    try:
        given = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}") from error
    array = real(given, name)
    small = array.dtype in (np.float16, np.float32)
    return array.astype(np.float32 if small else np.float64, copy=False)
