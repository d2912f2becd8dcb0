"""Reading and writing files: whole or not at all, and with errors that name the file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from graph2vid._values import repaired, shown
from graph2vid.errors import FormatError, Graph2VidError

STDOUT = "-"
"""The name that stands for standard output where something is written."""

FOLDER_VARIABLE = "GRAPH2VID_CACHE"
"""The environment variable that names the folder of the cache."""

_MOST_DIGITS = 30  # of a whole number in JSON
_DEEPEST = 100  # lists and objects within each other
_HOLDERS = (dict, list)
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


@contextlib.contextmanager
def naming(path: str | os.PathLike[str], doing: str = "read") -> Iterator[None]:
    """Turn an operating-system error into one line that names the file, and what was to be done with it."""
    try:
        yield
    except OSError as error:
        raise Graph2VidError(f"cannot {doing} {path}: {error.strerror or error}") from error


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` under a temporary name and rename it; nothing partial is ever left.

    A link is followed, and a device or pipe is written to: neither is replaced by a file. ``-`` is standard output, as
    it was when the process began: what is printed may have been sent elsewhere.
    """
    if os.fspath(path) == STDOUT and sys.__stdout__ is not None:
        sys.__stdout__.flush()
        sys.__stdout__.buffer.write(data)
        sys.__stdout__.flush()
        return
    if not os.fspath(path):
        raise Graph2VidError("cannot write a file with an empty name")
    with naming(path, "write"):
        target = Path(path).resolve()
        if target.is_dir():
            raise Graph2VidError(f"cannot write {path}: it is a folder")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
    with written_whole(path) as temporary:
        temporary.write_bytes(data)


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Hand out a file beside ``path`` to be written; where all goes well it takes the place of ``path``.

    Whatever happens, a kill included, ``path`` is what it was or what was written, whole.
    """
    with naming(path, "write"):
        target = Path(path).resolve()
        temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        # It gets the mode of any new file. mkstemp's is 0600, and to ask for the umask sets it for other threads.
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)  # it is there where something went wrong


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8, whole or not at all; of a file's name, what is no UTF-8 is replaced."""
    write_bytes(path, repaired(text).encode("utf-8"))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as indented JSON, whole or not at all; refused is what :func:`read_json` would not read."""
    text = repaired(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
    parse_json(text, f"cannot write {path}")
    write_text(path, text + "\n")


def read_bytes(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Read a file, or its first ``most`` bytes."""
    with naming(path), Path(path).open("rb") as file:
        return file.read(most)


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a UTF-8 text file (a byte-order mark is allowed)."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not a UTF-8 text file (byte {error.start})") from error


def parse_json(text: str, source: str, *, lenient: bool = False, infinite: bool = False) -> Any:
    """Parse JSON text; an error names ``source``, line and column.

    Refused are NaN, infinite numbers, whole numbers of more than 30 digits, values nested more than 100
    deep, and strings that are no text, for they hold half a character (a lone surrogate).

    Parameters
    ----------
    text, source : str
    lenient : bool
        For what pages hold: strings may have bare line breaks and lone surrogates in them.
    infinite : bool
        For matrices, in which a log-probability may be -Infinity: infinite numbers are read.
    """

    def constant(name: str) -> float:
        if infinite and name != "NaN":
            return float(name)
        raise ValueError(f"{name} is no number of JSON")

    try:
        value = json.loads(text, strict=not lenient, parse_int=_whole, parse_float=_decimal, parse_constant=constant)
        _refuse_depth(value)
        if not lenient and _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise FormatError(f"{source}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        limit = f"more than {_DEEPEST} lists and objects within each other"
        raise FormatError(f"{source}: JSON nested too deeply ({limit})") from error
    except UnicodeEncodeError as error:
        raise FormatError(f"{source}: a string holds half a character (a lone surrogate), which is no text") from error
    except ValueError as error:
        raise FormatError(f"{source}: not JSON that can be read ({error})") from error
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits; at most {_MOST_DIGITS} are read")
    return int(digits)


def _decimal(digits: str) -> float:
    found = float(digits)
    if not abs(found) < math.inf:
        raise ValueError(f"the number {digits[:20]} is too large")
    return found


def _refuse_depth(value: Any) -> None:
    """Raise a RecursionError where lists and objects lie too deep within each other for those who walk through them."""
    level = [value] if type(value) in _HOLDERS else []
    for _ in range(_DEEPEST):
        inner = (holder.values() if isinstance(holder, dict) else holder for holder in level)
        level = [child for children in inner for child in children if type(child) in _HOLDERS]
    if level:
        raise RecursionError


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file."""
    return parse_json(read_text(path), str(path))


def check_format(value: Any, *, kind: str, version: int, source: str) -> dict[str, Any]:
    """Check the header of one of our JSON documents: ``{"format": kind, "version": n, …}``.

    Older versions are accepted (the caller upgrades them), newer and foreign ones are refused.
    """
    if not isinstance(value, dict) or value.get("format") != kind:
        found = value.get("format") if isinstance(value, dict) else type(value).__name__
        raise FormatError(f"{source} is not a {kind} file (its format is {shown(found)})")
    found = value.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise FormatError(f"{source}: the format version must be a positive whole number, not {shown(found)}")
    if found > version:
        advice = f"this graph2vid reads up to {version}: install a newer one"
        raise FormatError(f"{source} has {kind} version {found}; {advice}")
    return value


def cache_folder() -> Path:
    """Return the folder of the user's cache: ``$GRAPH2VID_CACHE``, else where this system keeps caches."""
    if chosen := os.environ.get(FOLDER_VARIABLE):
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # a user whom this system does not know
        return _own_folder(Path(tempfile.gettempdir()) / f"graph2vid-{os.getuid()}")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "graph2vid" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "graph2vid"
    users = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (users if users.is_absolute() else home / ".cache") / "graph2vid"


def _own_folder(folder: Path) -> Path:
    """Make a folder among those of other users, or refuse it: its owner could plant transcripts there."""
    with contextlib.suppress(OSError):  # it is there; or none can be made, of which a cache warns
        folder.mkdir(mode=0o700)
    if os.path.lexists(folder) and folder.lstat().st_uid != os.getuid():
        raise Graph2VidError(f"the cache folder {folder} is somebody else's: set {FOLDER_VARIABLE} to one of yours")
    return folder


def hold(file: IO[Any]) -> None:
    """Hold an open file until it is closed or this process ends.

    Raises
    ------
    OSError
        Another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
