"""How long ``import graph2vid`` and the help take: ``python -m benchmarks.startup``.

The median of some fresh processes each, in wall-clock and processor seconds, beside an empty Python process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from statistics import median

RUNS = 11
CASES = {
    "python -c pass": ["-c", "pass"],
    "import graph2vid": ["-c", "import graph2vid"],
    "graph2vid --help": ["-m", "graph2vid", "--help"],
    "graph2vid ground --help": ["-m", "graph2vid", "ground", "--help"],
}


def _seconds(arguments: list[str]) -> tuple[float, float]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure in turns, so that a busy moment falls on all cases alike."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, arguments in CASES.items():
            found[name].append(_seconds(arguments))
    for name, times in found.items():
        wall, processor = (median(of_run) for of_run in zip(*times, strict=True))
        print(f"{name:<26}{wall:.3f} s, of the processor {processor:.3f} s")


if __name__ == "__main__":
    main()
