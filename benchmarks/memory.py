"""Peak memory of a cost-only alignment, measured in a process of its own: this module, run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks import ROOT
from benchmarks.cases import Case, bag
from graph2vid.alignment import align
from graph2vid.errors import Graph2VidError


def peak_bytes() -> int:
    """Return the most memory this process has held at once."""
    try:
        # Not ru_maxrss, which begins with what the parent held when it started this process.
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def measure(steps: int, clips: int) -> dict[str, Any]:
    """Compile a bag of steps and align it cost-only, here and now; return sizes, times and peak memory."""
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
    command = [sys.executable, "-m", "benchmarks.memory", str(steps), str(clips)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Graph2VidError(f"the measurement of memory failed: {done.stderr.strip() or done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
