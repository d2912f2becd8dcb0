"""Arrays in a safetensors file: read and written with numpy alone."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graph2vid._files import parse_json, read_bytes, write_bytes
from graph2vid._values import count_of
from graph2vid.errors import FormatError

Array: TypeAlias = npt.NDArray[Any]
Tensors: TypeAlias = dict[str, Array]

_CODES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "i1"}
_TYPES: dict[str, np.dtype[Any]] = {name: np.dtype(code) for name, code in _CODES.items()}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def write_safetensors(path: str | os.PathLike[str], tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write arrays, and words about them."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, array in tensors.items():
        ends = [at, at := at + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": ends}
    text = json.dumps(header, ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    parts = [len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in tensors.values())]
    write_bytes(path, b"".join(parts))


def read_safetensors(path: str | os.PathLike[str]) -> tuple[Tensors, dict[str, str]]:
    """Read the arrays of a safetensors file, and the words about them.

    Raises
    ------
    FormatError
        The file is cut off, or is no safetensors file.
    """
    data = read_bytes(path)
    size = int.from_bytes(data[:8], "little")
    body = 8 + size
    try:
        if len(data) < 8 or body > len(data):
            raise ValueError("its header is cut off")
        header = parse_json(data[8:body].decode("utf-8"), "its header")
        metadata = header.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("what it says of itself is no text")
        tensors = {name: _tensor(data, body, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{path} is not a whole safetensors file ({error}): fetch or make it anew") from error
    return tensors, metadata


def _tensor(data: bytes, body: int, entry: Mapping[str, Any]) -> Array:
    dtype, shape = _TYPES[entry["dtype"]], tuple(count_of(size, "a size") for size in entry["shape"])
    start, stop = (count_of(offset, "an offset") for offset in entry["data_offsets"])
    count = math.prod(shape)
    if stop - start != count * dtype.itemsize or body + stop > len(data):
        raise ValueError("its numbers are cut off")
    return np.frombuffer(data, dtype, count, body + start).reshape(shape)
