"""What took long to make, kept on disk: one file per result, named by everything that the result depends on.

There is one cache per user (:func:`cache_folder`), of limited size: what was not used for longest goes first. A folder
that somebody names for a purpose of its own has no limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import cache_folder, check_format, naming, parse_json, read_bytes, write_bytes
from graph2vid.errors import FormatError, Graph2VidError, InputError

Key: TypeAlias = Mapping[str, object]
"""Everything that a result depends on (content hashes, model name and version, options), fit for JSON."""

Value = TypeVar("Value")

LIMIT_VARIABLE = "GRAPH2VID_CACHE_LIMIT"
"""The environment variable that says how large the cache may grow: bytes, or a number with K, M, G or T."""

DEFAULT_LIMIT = 2 << 30

_FORMAT = "graph2vid-cache"
_VERSION = 1
_DIGEST_BYTES = 20
_KIND = re.compile(r"[A-Za-z0-9_]+")
_ENTRY = re.compile(rf"({_KIND.pattern})-[0-9a-f]{{{2 * _DIGEST_BYTES}}}\.(?:json|npy)")
_UNDER_WAY = re.compile(rf"\.{_ENTRY.pattern}\..*\.part")
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_KEPT = 0.9  # of the limit, after the oldest entries went: not every further one is to sort them all
_ABANDONED = 3600.0  # seconds after which a file under way is one that nobody will finish
_blake2b = partial(hashlib.blake2b, digest_size=_DIGEST_BYTES)


def content_hash(path: str | os.PathLike[str]) -> str:
    """Return the BLAKE2b hash of a file's bytes, as hexadecimal digits; the file is read piece by piece."""
    with naming(path), Path(path).open("rb") as file:
        return hashlib.file_digest(file, _blake2b).hexdigest()


def text_hash(*parts: str) -> str:
    """Return the BLAKE2b hash of some texts, as hexadecimal digits; where one ends and the next begins matters."""
    digest = _blake2b()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def cache_limit() -> int:
    """Return how many bytes the user's cache may take: ``$GRAPH2VID_CACHE_LIMIT``, else 2 GiB; at 0 nothing is kept."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return DEFAULT_LIMIT
    found = _LIMIT.fullmatch(given)
    if found is None:
        raise InputError(f"{LIMIT_VARIABLE} must be a size such as 500M or 2G, not {given!r}")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


@dataclass(frozen=True)
class Entry:
    """A file of a cache: what it holds, how large it is, and when it was last used (seconds since the epoch)."""

    path: Path
    kind: str
    size: int
    used: float


class Cache:
    """A folder of results.

    An entry is a file ``KIND-HASH.json`` or ``KIND-HASH.npy``, written whole or not at all after its value was
    made; several processes may use one folder. An entry that is damaged, or is not what its name says, is made anew.
    Where nothing can be written, the value is returned all the same, with one warning per folder and process.

    Parameters
    ----------
    folder : path, optional
        Made when the first entry is written; by default that of the user (:func:`cache_folder`), which alone has a
        limit of size (:func:`cache_limit`).

    Attributes
    ----------
    hits, misses : int
        How many values were found here, and how many had to be made.
    limit : int or None
        The most bytes that the entries may take together.
    """

    _warned: ClassVar[set[Path]] = set()

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        users = cache_folder()
        self.folder = users if folder is None else Path(folder)
        self.limit = cache_limit() if self.folder == users else None
        self.hits = self.misses = 0
        self._unmeasured: int | None = None  # bytes written since the folder was last measured; None: never measured

    def entries(self) -> list[Entry]:
        """Return the entries, those first that were not used for longest; nothing else in the folder counts."""
        found = []
        with naming(self.folder), contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as files:
            for file in files:
                named = _ENTRY.fullmatch(file.name)
                with contextlib.suppress(OSError):  # it went meanwhile
                    if named and file.is_file(follow_symlinks=False):
                        status = file.stat(follow_symlinks=False)
                        found.append(Entry(Path(file.path), named[1], status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: (entry.used, entry.path))

    def clear(self, kind: str | None = None) -> tuple[int, int]:
        """Remove all entries, or those of a kind; return how many they were, and how many bytes.

        Other files in the folder stay, and so does the folder unless it is empty then.
        """
        gone = [entry for entry in self.entries() if kind in (None, entry.kind)]
        for entry in gone:
            with naming(entry.path, "remove"):
                entry.path.unlink(missing_ok=True)
        self._remove_abandoned()
        with contextlib.suppress(OSError):
            self.folder.rmdir()
        return len(gone), sum(entry.size for entry in gone)

    def _remove_abandoned(self) -> None:
        """Remove what processes that were killed left half written."""
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                if _UNDER_WAY.fullmatch(path.name) and path.stat().st_mtime < time.time() - _ABANDONED:
                    path.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        """Let the entries go that were not used for longest, until another of ``size`` bytes fits."""
        assert self.limit is not None
        if self._unmeasured is not None and self._unmeasured + size <= self.limit * (1 - _KEPT) / 2:
            self._unmeasured += size  # others write too: half of the room that was made is theirs
            return
        self._remove_abandoned()
        entries = self.entries()
        left = sum(entry.size for entry in entries)
        if left + size > self.limit:
            for entry in entries:
                if left + size <= self.limit * _KEPT:
                    break
                with contextlib.suppress(OSError):
                    entry.path.unlink(missing_ok=True)
                    left -= entry.size
        self._unmeasured = size if left + size <= self.limit * _KEPT else None

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

        def made() -> tuple[Any, bytes]:
            text = _canonical(make())
            entry = {"format": _FORMAT, "version": _VERSION, "key": key, "check": text_hash(text)}
            head = json.dumps(entry, ensure_ascii=False, allow_nan=False)
            return json.loads(text), f'{head[:-1]}, "value": {text}}}\n'.encode("utf-8", "surrogatepass")

        return self._kept(f"{kind}.json", key, partial(_read_json, key=_canonical(key)), made)

    def array(self, kind: str, key: Key, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return the array of an entry; if there is none, call ``make`` and keep what it returns.

        The parameters are those of :meth:`json`; ``make`` returns an array of numbers.
        """

        def made() -> tuple[NDArray[Any], bytes]:
            array, buffer = np.asarray(make()), io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            return array, buffer.getvalue() + _blake2b(buffer.getvalue()).digest()  # NumPy stops where the array ends

        return self._kept(f"{kind}.npy", key, _read_array, made)

    def _kept(
        self, name: str, key: Key, read: Callable[[Path], Value], make: Callable[[], tuple[Value, bytes]]
    ) -> Value:
        """Return what is read of an entry; if there is none, what ``make`` returns, whose bytes are kept."""
        kind, _, suffix = name.rpartition(".")
        if not _KIND.fullmatch(kind):
            raise InputError(f"the kind of a cached value must be letters, digits and underscores, not {kind!r}")
        path = self.folder / f"{kind}-{text_hash(kind, _canonical(key))}.{suffix}"
        try:
            value = read(path)
        except (Graph2VidError, ValueError, EOFError):
            self.misses += 1
        else:
            self.hits += 1
            if self.limit is not None:
                with contextlib.suppress(OSError):
                    os.utime(path)
            return value
        value, data = make()
        self._write(path, data)
        return value

    def _write(self, path: Path, data: bytes) -> None:
        if self.limit is not None and len(data) > self.limit * _KEPT:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.limit is not None:
                self._make_room(len(data))
            write_bytes(path, data)
        except (OSError, Graph2VidError) as error:
            if self.folder not in self._warned:
                self._warned.add(self.folder)
                reason = str(error) if isinstance(error, Graph2VidError) else error.strerror or str(error)
                warnings.warn(f"results are not kept in {self.folder}: {reason}", stacklevel=3)


def _canonical(value: object) -> str:
    """Return ``value`` as the one JSON text that stands for it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
    if _blake2b(whole).digest() != digest:
        raise FormatError(f"{path} is damaged")
    array: NDArray[Any] = np.load(io.BytesIO(whole), allow_pickle=False)
    return array
