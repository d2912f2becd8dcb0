"""Arrays in an LMDB database, an entry per video: ``.npy`` or ``.npz`` content or raw float32; never unpickled."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import FormatError, MissingDependencyError

RECIPE = (
    "nothing is unpickled here; convert it once, where you trust the file: for each (key, sample), "
    "numpy.save(f'features/{VIDEO}.npy', sample['frame_features'])"
)


@dataclass(frozen=True)
class LmdbArrays:
    """The arrays of an LMDB database (a folder with ``data.mdb``, or one file); opened for each reading."""

    path: Path

    @contextmanager
    def _entries(self) -> Iterator[Any]:
        try:
            import lmdb
        except ImportError as error:
            raise MissingDependencyError(f"{self.path} needs the package lmdb", extra="lmdb") from error
        try:
            with (
                lmdb.open(str(self.path), readonly=True, lock=False, subdir=self.path.is_dir()) as database,
                database.begin() as entries,
            ):
                yield entries
        except lmdb.Error as error:
            raise FormatError(f"{self.path} is not a readable LMDB database: {str(error).splitlines()[0]}") from error

    def names(self) -> list[str]:
        """Return the keys that are text."""
        with self._entries() as entries:
            return [bytes(key).decode() for key, _ in entries.cursor() if bytes(key).isascii()]

    def read(self, keys: Sequence[str], size: int) -> tuple[NDArray[Any], str]:
        """Return the array of the first key that is there, and where it is.

        Parameters
        ----------
        keys : sequence of str
        size : int
            Dimensions; raw numbers are rows of so many.
        """
        with self._entries() as entries:
            for key in keys:
                content = entries.get(key.encode())
                if content is not None:
                    where = f"{self.path}, entry {key}"
                    return _array(bytes(content), size, where), where
        raise FormatError(f"video {keys[-1]} is annotated but has no features: {self.path} has no entry {keys[-1]!r}")


def _array(content: bytes, size: int, where: str) -> NDArray[Any]:
    found: NDArray[Any]
    try:
        if content.startswith(b"\x93NUMPY"):
            found = np.load(io.BytesIO(content), allow_pickle=False)
        elif zipfile.is_zipfile(io.BytesIO(content)):
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                named = {name: archive[name] for name in archive.files}
            if len(named) != 1:
                raise FormatError(f"{where} is an .npz of {len(named)} arrays; it should hold one")
            found = next(iter(named.values()))
        elif content[:1] == b"\x80" and content.endswith(b"."):
            raise FormatError(f"{where} is a pickle: {RECIPE}")
        elif content and len(content) % (4 * size) == 0:
            found = np.frombuffer(content, dtype=np.float32).reshape(-1, size)
        else:
            wanted = f".npy or .npz content, or float32 numbers in rows of {size}"
            raise FormatError(f"{where} has {len(content)} bytes that are no {wanted}")
    except (ValueError, EOFError, OSError, KeyError, SyntaxError, zipfile.BadZipFile) as error:
        raise FormatError(f"{where} is not a readable array: {(str(error).splitlines() or [''])[0][:200]}") from error
    if found.dtype.kind not in "fiu":
        raise FormatError(f"{where} holds {found.dtype}, not real numbers")
    if not np.isfinite(found).all():
        raise FormatError(f"{where} holds numbers that are not finite")
    return found
