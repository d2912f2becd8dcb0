"""Nothing that Ray starts outlives the run, however that ends: a process of its own sees to it (Linux).

Ray ends most of its processes when the driver is killed, but not its agents, which then wait a minute or more for a
server that is gone. This module, run as a program, learns the processes of Ray below the driver until its standard
input ends, which is when the driver does, and ends those that are left. It needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_LOOK_SECONDS = 0.5


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
    command = [sys.executable, "-I", __file__, str(os.getpid()), package]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True):
        yield


def _below(driver: int, package: bytes) -> dict[int, str]:
    """Return the processes of a package below a driver, each with when it began: a number may be given again."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _fields(int(folder.name))):
            parents[int(folder.name)] = int(fields[1]), fields[19]
    found = {pid for pid, (parent, _) in parents.items() if parent == driver and package in _command(pid)}
    while more := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return {pid: parents[pid][1] for pid in found}


def _fields(pid: int) -> list[str]:
    """Return what the system says of a process, from its state on; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main(driver: int, package: bytes) -> None:
    """Watch a driver until standard input ends, and end what is left of the package's processes below it."""
    seen: dict[int, str] = {}
    while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
        seen |= _below(driver, package)
    for pid, began in (seen | _below(driver, package)).items():
        fields = _fields(pid)
        if pid != os.getpid() and fields and fields[19] == began:  # its own command line names the package, too
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), os.fsencode(sys.argv[2]))
