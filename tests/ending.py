"""Kill tests: a command that gets a signal in the middle of its work leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 5.0
"""Within which nothing may be left."""

_START_SECONDS = 120.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status, what it wrote on stderr, how many processes it had had.

    ``seconds`` is the processor time that the command itself took after the signal.
    """

    status: int
    stderr: str
    processes: int
    seconds: float


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> dict[int, str]:
    """Return the processes below one, and itself, that are not over: process id → when it began (Linux)."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            if fields[0] not in "ZX":
                parents[int(folder.name)] = int(fields[1]), fields[19]
    found = {root}
    while more := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return {pid: parents[pid][1] for pid in found if pid in parents}


def left(of: Mapping[int, str]) -> set[int]:
    """Return those processes that are still there; a number that was given to another process does not count."""
    left = set()
    for pid, began in of.items():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and fields[19] == began:
            left.add(pid)
    return left


def end_by_signal(
    arguments: Sequence[str],
    *,
    ready: Callable[[Mapping[int, str]], bool],
    number: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run ``graph2vid ARGUMENTS``, send the signal once it is ``ready``, and see that nothing is left of it.

    Parameters
    ----------
    arguments : sequence of str
        Of the command line.
    ready : function
        From the processes of the command (with itself) to whether it is in the middle of its work.
    number : signal
        Sent to the command alone, not to its group.
    environment : mapping, optional
        Further variables.
    """
    command = [sys.executable, "-m", "graph2vid", *arguments]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=told,
            env=os.environ | dict(environment or {}),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # which nohup makes us ignore
        )
        seen: dict[int, str] = {}
        try:
            limit = time.monotonic() + _START_SECONDS
            while not ready(now := descendants(process.pid)):
                told.seek(0)
                assert process.poll() is None, f"it ended too early: {told.read()}"
                assert time.monotonic() < limit, "it does not get to work"
                time.sleep(0.02)
            seen = now | descendants(process.pid)
            before = after = processor_seconds(process.pid)
            process.send_signal(number)
            limit = time.monotonic() + SECONDS
            while (process.poll() is None or left(seen)) and time.monotonic() < limit:
                with contextlib.suppress(OSError):
                    after = max(after, processor_seconds(process.pid))
                time.sleep(0.02)
            status = process.poll()
            assert status is not None, f"it runs on after {number.name}"
            assert not left(seen), f"left running after {number.name}: {left(seen)}"
            told.seek(0)
            return Ended(status, told.read(), len(seen), after - before)
        finally:
            process.kill()
            for pid in left(seen):
                os.kill(pid, signal.SIGKILL)
            process.wait()
