"""Peak memory: of one call, and of a cost-only alignment in a process of its own (this module, run)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import ROOT

KEEP_NOTHING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
"""What glibc takes from the environment: what is freed goes back to the system at once."""


def peak_bytes() -> int:
    """Return the most memory this process has held at once."""
    # Not ru_maxrss, which begins with what the parent held when it started this process.
    if (peak := _status_bytes("VmHWM")) is not None:
        return peak
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def call_bytes(call: Callable[[], object]) -> int | None:
    """Return the most memory that a call holds beside what the process held before it; None where no system tells.

    Freed memory that the process keeps is not seen: start it with `KEEP_NOTHING` in its environment.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    except OSError:
        return None
    before = _status_bytes("VmRSS") or 0
    call()
    return max(0, peak_bytes() - before)


def _status_bytes(field: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), None)


def measure(steps: int, clips: int) -> dict[str, Any]:
    """Compile a bag of steps and align it cost-only, here and now; return sizes, times and peak memory."""
    import numpy as np

    from benchmarks.cases import Case, bag
    from graph2vid.alignment import align

    case = Case(f"bag{steps}", bag(steps), clips)
    begin = time.perf_counter()
    tsort = case.tsort
    compiled = time.perf_counter()
    ((match, drop),) = case.costs(np.float32)
    align(tsort, match, drop, cost_only=True)  # builds what the kernels keep of the procedure
    built = time.perf_counter()
    align(tsort, match, drop, cost_only=True)
    seconds = time.perf_counter() - built
    return {
        **case.sizes(),
        "seconds": seconds,
        "ns_per_update": seconds / case.updates * 1e9,
        "compile_seconds": compiled - begin,
        "cost_only": True,
        "peak_bytes": peak_bytes(),
    }


def measure_apart(steps: int, clips: int) -> dict[str, Any]:
    """Do as `measure`, in a process of its own."""
    from graph2vid.errors import Graph2VidError

    command = [sys.executable, "-m", "benchmarks.memory", str(steps), str(clips)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Graph2VidError(f"the measurement of memory failed: {done.stderr.strip() or done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
