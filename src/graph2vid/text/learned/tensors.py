"""Weights in a safetensors file: matrices as 8-bit numbers with a scale per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from graph2vid._safetensors import Array as Array
from graph2vid._safetensors import Tensors as Tensors
from graph2vid._safetensors import read_safetensors as read_safetensors
from graph2vid._safetensors import write_safetensors as write_safetensors

SCALE = "#scale"
_SMALLEST_MATRIX = 4096
_MOST_LEVELS = 127


def quantise(tensors: Mapping[str, Array]) -> Tensors:
    """Turn every large matrix into 8-bit numbers and a 32-bit scale per row; the rest into 32-bit numbers."""
    found: Tensors = {}
    for name, array in tensors.items():
        array = array.astype("<f4")
        if array.ndim < 2 or array.size < _SMALLEST_MATRIX:
            found[name] = array
            continue
        scale = np.maximum(np.abs(array).max(axis=-1, keepdims=True), 1e-12) / _MOST_LEVELS
        found[name] = np.rint(array / scale).astype("i1")
        found[name + SCALE] = scale.astype("<f4")
    return found


def rows(tensors: Mapping[str, Array], name: str, wanted: Any = slice(None)) -> npt.NDArray[np.float32]:
    """Return rows of a tensor as 32-bit numbers."""
    found: npt.NDArray[np.float32] = tensors[name][wanted].astype(np.float32)
    scale = tensors.get(name + SCALE)
    if scale is not None:
        found *= scale[wanted]
    return found
