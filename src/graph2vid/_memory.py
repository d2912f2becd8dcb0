"""How much memory this process may still use: what the system has left, and no more than the limits set on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

from graph2vid.errors import InputError, TooLargeError

FREE_BYTES = 64 << 20
"""Below this nobody asks how much memory there is."""

_UNKNOWN = 4 << 30  # where the system does not say how much there is

_MEMINFO, _STATUS = Path("/proc/meminfo"), Path("/proc/self/status")
_CGROUP_FILES = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
_shares = 1


def available_memory() -> int:
    """Return the bytes that this process may still use.

    The least of what the system has left, of what the memory cgroups of the process leave (v1 and v2, all levels), and
    of what its address space and its data may still grow by (``RLIMIT_AS``, ``RLIMIT_DATA``); of that its share, where
    :func:`share_memory` says that others work beside it.
    """
    return max(0, min([_system(), *_cgroups(), *_rlimits()])) // _shares


def share_memory(among: int) -> None:
    """Say that this process is one of several that work side by side: each counts on its share alone."""
    global _shares
    if among < 1:
        raise InputError(f"memory is shared among at least 1 process, not {among!r}")
    _shares = among


def require_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what needs more than half of the memory that may still be used, before anything is made.

    Raises
    ------
    TooLargeError
        "``what`` needs … of memory, …: ``advice``".
    """
    if needed > FREE_BYTES and needed > (bound := available_memory() // 2):
        raise TooLargeError(f"{what} needs {in_units(needed)} of memory, and {in_units(bound)} may be used: {advice}")


def in_units(count: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:,.{0 if count >= 10 * size else 1}f} {unit}"
    return f"{count / 1024:,.1f} KiB"


# -- the system ---------------------------------------------------------------------------------------------------


def _system() -> int:
    """Return what the system could give without swapping."""
    if (known := _kibibytes(_MEMINFO, "MemAvailable:")) is not None:
        return known
    if sys.platform == "win32":
        return _windows()
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):  # macOS knows the latter alone
        with suppress(ValueError, OSError):
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return _UNKNOWN


def _windows() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("all", "available", "all_paged", "paged", "all_virtual", "virtual", "extended")
        ]

    status = Status(length=ctypes.sizeof(Status))
    windll = getattr(ctypes, "windll", None)
    if windll is None or not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return _UNKNOWN
    return int(status.available)


# -- cgroups ------------------------------------------------------------------------------------------------------


def _cgroups() -> Iterator[int]:
    """Yield what each memory cgroup of the process leaves, where it has a limit."""
    for limit_file, used_file, stat_file, cached in _cgroup_files():
        limit = _number(limit_file)
        if limit is None or limit >= 1 << 62:  # "max", or v1's word for none
            continue
        used = _number(used_file) or 0
        # Files that were read count as used and are given up when memory is short.
        stat = (line.partition(" ") for line in _read(stat_file).splitlines())
        used -= sum(int(value) for name, _, value in stat if name == cached)
        yield limit - max(used, 0)


@cache
def _cgroup_files() -> tuple[tuple[Path, Path, Path, str], ...]:
    """Return of each memory cgroup of this process the files of its limit, use and statistics, and their cache field.

    The paths are made once: that takes about as long as reading the files.
    """
    own = {"cgroup2": "", "cgroup": ""}  # the path of its group in each hierarchy
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            own["cgroup2"] = path
        elif "memory" in controllers.split(","):
            own["cgroup"] = path
    found = []
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        if kind not in own or not own[kind] or (kind == "cgroup" and "memory" not in options.split(" ")[-1].split(",")):
            continue
        root, point = mount.split(" ")[3:5]
        limit, used, cached = _CGROUP_FILES[kind]
        # In a container the mount shows a part of the hierarchy, maybe not the one that the path counts from.
        inner, outer = PurePosixPath(own[kind]), PurePosixPath(root)
        inside = inner.relative_to(outer) if inner.is_relative_to(outer) else inner.relative_to("/")
        parts = () if ".." in inside.parts else inside.parts
        levels = (Path(point).joinpath(*parts[:depth]) for depth in range(len(parts) + 1))
        limited = (level for level in levels if (level / limit).is_file())
        found += [(level / limit, level / used, level / "memory.stat", cached) for level in limited]
    return tuple(found)


# -- limits of the process ----------------------------------------------------------------------------------------


def _rlimits() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, field in (("RLIMIT_AS", "VmSize:"), ("RLIMIT_DATA", "VmData:")):
        kind = getattr(resource, name, None)
        limit = resource.RLIM_INFINITY if kind is None else resource.getrlimit(kind)[0]
        if limit == resource.RLIM_INFINITY:
            continue
        yield limit - (_kibibytes(_STATUS, field) or 0)


def _read(path: Path) -> str:
    """Return a file of the system, empty where there is none."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _kibibytes(path: Path, field: str) -> int | None:
    """Return the bytes of a field that a file of the system gives in KiB; None where there is none."""
    lines = (line for line in _read(path).splitlines() if line.startswith(field))
    return next((int(line.split()[1]) * 1024 for line in lines), None)


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None
