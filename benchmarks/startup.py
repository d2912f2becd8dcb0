"""How long ``import graph2vid``, the help, and the first answer take: ``python -m benchmarks.startup``.

A recipe is parsed, and grounded in captions, from the start of the process to its end. The median of some fresh
processes each, in wall-clock and processor seconds, beside an empty Python process. All modules are compiled before,
as pip leaves them, and each case has been run once before: vectors of texts are in the user's cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from graph2vid.sample.narrated import NarratedFiles

RUNS = 11
EXAMPLES = Path(__file__).parent.parent / "examples" / "procedures"
PARSE = ["parse", str(EXAMPLES / "pizza.txt")]
GROUND = ["ground", PARSE[1], str(NarratedFiles().captions), "-o", os.devnull]
CASES = {
    "python -c pass": ["-c", "pass"],
    "import graph2vid": ["-c", "import graph2vid"],
    "graph2vid --help": ["-m", "graph2vid", "--help"],
    "graph2vid ground --help": ["-m", "graph2vid", "ground", "--help"],
    "parse": ["-m", "graph2vid", *PARSE],
    "parse, learned": ["-m", "graph2vid", *PARSE, "--parser", "learned"],
    "parse, rules": ["-m", "graph2vid", *PARSE, "--parser", "rules"],
    "ground, learned": ["-m", "graph2vid", *GROUND, "--parser", "learned"],
    "ground, rules": ["-m", "graph2vid", *GROUND, "--parser", "rules"],
}


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _seconds(arguments: list[str]) -> tuple[float, float]:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure in turns, so that a busy moment falls on all cases alike."""
    for arguments in CASES.values():
        _seconds(arguments)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, arguments in CASES.items():
            found[name].append(_seconds(arguments))
    for name, times in found.items():
        wall, processor = (median(of_run) for of_run in zip(*times, strict=True))
        print(f"{name:<26}{wall:.3f} s, of the processor {processor:.3f} s")


if __name__ == "__main__":
    main()
