"""Hold a file against other processes, on every system."""

from __future__ import annotations

from typing import IO, Any


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
