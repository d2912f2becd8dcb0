"""What took long to make, kept on disk: one file per result, named by everything that the result depends on."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import check_format, parse_json, read_bytes, write_bytes
from graph2vid.errors import FormatError, Graph2VidError, InputError

Key: TypeAlias = Mapping[str, object]
"""Everything that a result depends on (content hashes, model name and version, options), fit for JSON."""

FOLDER_VARIABLE = "GRAPH2VID_CACHE"
"""The environment variable that names the folder of all caches."""

_FORMAT = "graph2vid-cache"
_VERSION = 1
_DIGEST_BYTES = 20
_READ_BYTES = 1 << 20
_KIND = re.compile(r"[A-Za-z0-9_]+")


def content_hash(path: str | os.PathLike[str]) -> str:
    """Return the BLAKE2b hash of a file's bytes, as hexadecimal digits; the file is read piece by piece."""
    path = Path(path)
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    try:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    except OSError as error:
        raise Graph2VidError(f"cannot read {path}: {error.strerror or error}") from error
    return digest.hexdigest()


def text_hash(*parts: str) -> str:
    """Return the BLAKE2b hash of some texts, as hexadecimal digits; where one ends and the next begins matters."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cache_folder(output: str | os.PathLike[str] | None = None) -> Path:
    """Return where results are kept by default.

    That is ``$GRAPH2VID_CACHE`` if it is set; else beside ``output``, the file a command writes, in
    ``OUTPUT.cache/``; else the user's cache folder.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen)
    if output is not None:
        output = Path(output)
        return output.parent / f"{output.name}.cache"
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path("~/.cache").expanduser()) / "graph2vid"


class Cache:
    """A folder of results.

    An entry is a file ``KIND-HASH.json`` or ``KIND-HASH.npy``, written whole or not at all after its value was
    made. An entry that is damaged, or is not what its name says, is made anew. Where nothing can be written, the
    value is returned all the same, with one warning per cache.

    Parameters
    ----------
    folder : path
        Made when the first entry is written.

    Attributes
    ----------
    hits, misses : int
        How many values were found here, and how many had to be made.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.hits = 0
        self.misses = 0
        self._warned = False

    def json(self, kind: str, key: Key, make: Callable[[], Any]) -> Any:
        """Return the value of an entry; if there is none, call ``make`` and keep what it returns.

        Parameters
        ----------
        kind : str
            What the value is: letters, digits and underscores.
        key : mapping
            Everything that the value depends on.
        make : function
            Returns a value fit for JSON.

        Returns
        -------
        Any
            As JSON gives it back (a tuple is a list), also the first time.
        """
        path = self._path(kind, key, ".json")
        try:
            value = _read_json(path, _canonical(key))
        except (Graph2VidError, ValueError):
            pass
        else:
            self.hits += 1
            return value
        self.misses += 1
        text = _canonical(make())
        entry = {"format": _FORMAT, "version": _VERSION, "key": key, "check": text_hash(text)}
        head = json.dumps(entry, ensure_ascii=False, allow_nan=False)
        self._write(path, f'{head[:-1]}, "value": {text}}}\n'.encode("utf-8", "surrogatepass"))
        return json.loads(text)

    def array(self, kind: str, key: Key, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array of an entry; if there is none, call ``make`` and keep what it returns.

        The parameters are those of :meth:`json`; ``make`` returns an array of numbers.
        """
        path = self._path(kind, key, ".npy")
        try:
            found = _read_array(path)
        except (Graph2VidError, ValueError, EOFError):
            pass
        else:
            self.hits += 1
            return found
        self.misses += 1
        array = np.asarray(make())
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        data = buffer.getvalue()
        self._write(path, data + _digest(data))  # NumPy stops reading where the array ends
        return array

    def _path(self, kind: str, key: Key, suffix: str) -> Path:
        if not _KIND.fullmatch(kind):
            raise InputError(f"the kind of a cached value must be letters, digits and underscores, not {kind!r}")
        return self.folder / f"{kind}-{text_hash(kind, _canonical(key))}{suffix}"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(path, data)
        except (OSError, Graph2VidError) as error:
            if not self._warned:
                self._warned = True
                reason = str(error) if isinstance(error, Graph2VidError) else error.strerror or str(error)
                warnings.warn(f"results are not kept in {self.folder}: {reason}", stacklevel=3)


def _canonical(value: object) -> str:
    """Return ``value`` as the one JSON text that stands for it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _read_json(path: Path, key: str) -> Any:
    entry = parse_json(read_bytes(path).decode("utf-8", "surrogatepass"), str(path))
    check_format(entry, kind=_FORMAT, version=_VERSION, source=str(path))
    if "value" not in entry or _canonical(entry.get("key")) != key:
        raise FormatError(f"{path} is another entry")
    if text_hash(_canonical(entry["value"])) != entry.get("check"):
        raise FormatError(f"{path} is damaged")
    return entry["value"]


def _read_array(path: Path) -> NDArray[Any]:
    data = read_bytes(path)
    whole, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if _digest(whole) != digest:
        raise FormatError(f"{path} is damaged")
    array: NDArray[Any] = np.load(io.BytesIO(whole), allow_pickle=False)
    return array
