"""Which row of a table of word vectors a word has: looked up in spaCy's packed file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BYTES = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
"""The byte before a number → how many bytes the number has (MessagePack). A number below 128 is that byte itself."""

_ENTRY = 12
"""The bytes of nearly all entries: a key of 8 bytes and a row of 2, each with the byte before it."""


class VectorRows(Mapping[int, int]):
    """The hash of a word → the row of its vector, from a file ``key2row`` of spaCy.

    To make a dictionary of the file takes many times as long as to sort its keys by their first 16 bits, and a
    procedure has few words.

    Parameters
    ----------
    path : Path
        The file: one MessagePack map of unsigned integers.
    """

    def __init__(self, path: Path) -> None:
        packed = path.read_bytes()
        begins, self._others = _entries(packed)
        self._keys, self._rows = _numbers(packed, ">u8"), _numbers(packed, ">u2")
        firsts = self._rows[begins + 1].astype(np.uint16)  # of the bits of the keys
        self._begins = begins[np.argsort(firsts, kind="stable")]
        self._ends = np.cumsum(np.bincount(firsts, minlength=1 << 16))

    def __getitem__(self, key: int) -> int:
        if key in self._others:
            return self._others[key]
        first = key >> 48
        alike = self._begins[self._ends[first - 1] if first else 0 : self._ends[first]]
        found = alike[self._keys[alike + 1] == np.uint64(key)]
        if not len(found):
            raise KeyError(key)
        return int(self._rows[found[-1] + 10])

    def __iter__(self) -> Iterator[int]:
        yield from self._others
        yield from self._keys[self._begins + 1].tolist()

    def __len__(self) -> int:
        return len(self._others) + len(self._begins)


def _entries(packed: bytes) -> tuple[NDArray[np.int64], dict[int, int]]:
    """Return where the entries of 12 bytes begin, and the other entries."""
    data = np.frombuffer(packed, np.uint8)
    is_usual = (data[:-9] == 0xCF) & (data[9:] == 0xCD)
    every = [is_usual[first::_ENTRY].tobytes() for first in range(_ENTRY)]
    at = {0xDE: 3, 0xDF: 5}.get(packed[0], 1)
    runs, others = [np.empty(0, np.int64)], {}
    while at < len(packed):
        usual, first = every[at % _ENTRY], at // _ENTRY
        last = usual.find(0, first)
        end = at + _ENTRY * ((len(usual) if last < 0 else last) - first)
        if end > at:
            runs.append(np.arange(at, end, _ENTRY))
            at = end
        else:
            key, at = _number(packed, at)
            others[key], at = _number(packed, at)
    return np.concatenate(runs), others


def _number(packed: bytes, at: int) -> tuple[int, int]:
    """Return the number that is packed at a place, and the place after it."""
    if packed[at] < 128:
        return packed[at], at + 1
    end = at + 1 + _BYTES[packed[at]]
    return int.from_bytes(packed[at + 1 : end], "big"), end


def _numbers(packed: bytes, kind: str) -> NDArray[Any]:
    """Return the numbers that begin at each byte."""
    return np.ndarray(max(len(packed) - np.dtype(kind).itemsize + 1, 0), kind, packed, strides=(1,))
