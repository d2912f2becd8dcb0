"""Nothing that Ray starts outlives the run, however that ends: a process of its own sees to it (Linux).

Ray ends most of its processes when the driver is killed, but not its agents, nor workers that are only starting, which
then wait a minute or more for a server that is gone. This module, run as a program, learns the processes of Ray below
the driver until its standard input ends, which is when the driver does, and ends those that are left. What had just
begun then it knows by a mark in the environment. It needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

MARK = "GRAPH2VID_REAPED"
"""The variable that marks what is started meanwhile."""

_LOOK_SECONDS = 0.5
_LAST_LOOKS = 10
_LAST_LOOK_SECONDS = 0.1


@contextlib.contextmanager
def reaped(package: str) -> Iterator[None]:
    """End at the end, also when this process is killed, what programs of a package it has started, and all below them.

    Parameters
    ----------
    package : str
        The folder that is in the command lines of those programs.
    """
    if sys.platform != "linux":
        yield
        return
    mark = uuid4().hex
    command = [sys.executable, "-I", __file__, str(os.getpid()), package, mark]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True):
        os.environ[MARK] = mark
        try:
            yield
        finally:
            del os.environ[MARK]


def _processes() -> dict[int, list[str]]:
    """Return what the system says of each process, from its state on; not of those that have ended."""
    named = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
    found = {pid: _read(pid, "stat").rpartition(b")")[2].decode().split() for pid in named}
    return {pid: fields for pid, fields in found.items() if fields[:1] not in ([], ["Z"], ["X"])}


def _started(driver: int, package: bytes, mark: bytes | None) -> dict[int, str]:
    """Return the processes of a package that a driver started, and all below them.

    And those that carry a mark, wherever they are. Each with when it began: a number may be given again.
    """
    known = _processes()
    marked = {pid for pid in known if mark is not None and mark in _read(pid, "environ")}
    ours = marked | {pid for pid, fields in known.items() if int(fields[1]) == driver}
    found = {pid for pid in ours if package in _read(pid, "cmdline")}
    while more := {pid for pid, fields in known.items() if int(fields[1]) in found} - found:
        found |= more
    return {pid: known[pid][19] for pid in found}


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; nothing if that has ended, or is another user's."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def main(driver: int, package: bytes, mark: bytes) -> None:
    """Watch a driver until standard input ends, and end what is left of the package's processes."""
    seen: dict[int, str] = {}
    while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
        seen |= _started(driver, package, None)
    for _ in range(_LAST_LOOKS):  # one that is ended may just have started another
        seen |= _started(driver, package, mark)
        seen.pop(os.getpid(), None)  # its own command line names the package, too
        now = _processes()
        left = [pid for pid, began in seen.items() if pid in now and now[pid][19] == began]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LAST_LOOK_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), os.fsencode(sys.argv[2]), f"{MARK}={sys.argv[3]}".encode())
