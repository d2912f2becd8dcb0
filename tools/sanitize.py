"""Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer and run them on random cases.

    python tools/sanitize.py                    some 24,000 cases, on every instruction set that this processor has
    python tools/sanitize.py --cases 250000     a night's worth
    python tools/sanitize.py --seed 7           another series

A report of a sanitizer, or a mismatch that selfcheck finds, ends it with status 1. It needs GCC, and leaves everything
in build/sanitize.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanitize"
# What AddressSanitizer finds by itself is left out of the other: where all is inlined it takes very long to compile.
FLAGS = (
    "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=null,object-size,vptr,alignment "
    "-fno-sanitize-recover=all"
)
LAYERS = 100  # one case of so many is a layer of the learned parser, on all its instruction sets
SELFCHECK, FEATURES = 12, 24  # one case of so many is compared with plain enumeration, which takes long


def build() -> Path:
    """Build the extension and return where it is."""
    cmake = [sys.executable, "-m", "cmake"] if importlib.util.find_spec("cmake") else ["cmake"]
    make = ["-G", "Ninja"] if importlib.util.find_spec("ninja") else []
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    options = [
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCMAKE_CXX_FLAGS={FLAGS}",
        "-DCMAKE_BUILD_TYPE=None",
        "-DG2V_SANITIZE=ON",
    ]
    subprocess.run([*cmake, "-S", str(ROOT / "src/native"), "-B", str(BUILD), *make, *options], check=True, env=env)
    subprocess.run([*cmake, "--build", str(BUILD)], check=True, env=env)
    (found,) = BUILD.glob("_native*.so")
    return found


def run_under_sanitizers(extension: Path, arguments: list[str]) -> int:
    """Run this file again with the sanitizers loaded first, as an interpreter that was built without them needs."""
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name=lib{name}.so"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in ("asan", "ubsan", "stdc++")
    ]
    env = os.environ | {
        "LD_PRELOAD": os.pathsep.join(libraries),
        # Python frees little when it ends: leaks are looked for by the tests, which stop calls again and again.
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--extension", str(extension), *arguments]
    return subprocess.run(command, env=env, check=False).returncode


def load(extension: Path) -> object:
    """Make the extension the one that graph2vid uses."""
    import graph2vid

    spec = importlib.util.spec_from_file_location("graph2vid._native", extension)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["graph2vid._native"] = graph2vid._native = module
    spec.loader.exec_module(module)
    return module


def check(extension: Path, cases: int, seed: int) -> int:
    """Run the cases on every instruction set; return how many mismatches there were."""
    native = load(extension)
    from graph2vid.alignment import backends
    from graph2vid.selfcheck import selfcheck

    assert backends.native() is native
    warnings.simplefilter("ignore")
    levels, use = native.simd_levels(), native.use_simd
    native.use_simd = lambda level: None  # selfcheck would choose for itself
    wrong, done = 0, Counter()
    for level, name in enumerate(levels):
        use(level)
        done[f"{name}: layers"] += layers(native, seed, cases // len(levels) // LAYERS)
        for features, share in ((False, SELFCHECK), (True, FEATURES)):
            report = selfcheck(cases // len(levels) // share, seed, features=features, workers=1)
            wrong += sum(report.failures.values())
            done[f"{name}: selfcheck{' --features' if features else ''}"] += report.cases
        rest = cases // len(levels) - sum(done[key] for key in done if key.startswith(f"{name}:"))
        for index in range(rest):
            done[f"{name}: {fuzz(seed, index)}"] += 1
    for what, number in done.items():
        print(f"{what:32}{number:8,}", flush=True)
    print(f"{done.total():,} cases on {', '.join(levels)}: no report, {wrong} mismatches")
    return wrong


def layers(native: object, seed: int, cases: int) -> int:
    """Run transformer layers of random sizes, on every instruction set; return how many."""
    import numpy as np

    random = np.random.default_rng([seed, 8])
    for _ in range(cases):
        heads, size, inner, rows = (int(random.integers(1, most)) for most in (4, 5, 90, 70))
        width = 8 * heads * size

        def matrix(out: int, inputs: int) -> tuple[np.ndarray, ...]:
            weight = random.integers(-128, 128, size=(out, inputs)).astype(np.int8)
            return weight, *random.normal(size=(2, out)).astype(np.float32)

        norms = [tuple(random.normal(size=(2, width)).astype(np.float32)) for _ in range(2)]
        values = (random.normal(size=(rows, width)) * 10.0 ** random.integers(-40, 39)).astype(np.float32)
        values[random.random(values.shape) < random.choice([0.0, 0.1])] = random.choice([0.0, np.inf, np.nan])
        for level in range(len(native.encoder_levels())):
            sizes = ((3 * width, width), (width, width), (inner, width), (width, inner))
            native.QuantisedLayer(*(matrix(*given) for given in sizes), *norms, heads, 1e-12, level)(values)
            native.QuantisedLinear(matrix(inner, width), level)(values)
    return cases


def fuzz(seed: int, index: int) -> str:
    """Run one random case through one of the paths, and say which."""
    import numpy as np

    import graph2vid as g2v
    from graph2vid._stopping import within
    from graph2vid.alignment import SMOOTHINGS, ClipCosts, Durations, soft_costs
    from graph2vid.errors import Graph2VidError

    random = np.random.default_rng([seed, index])
    n_steps = int(random.integers(1, 12 if index % 50 else 90))
    odds = 0.5 if n_steps < 12 else 1.0
    edges = [(a, b) for b in range(n_steps) for a in range(b) if random.random() < odds]
    flow = g2v.FlowGraph.from_edges([str(step) for step in range(n_steps)], edges).transitive_reduction()
    dtype = np.float32 if random.random() < 0.5 else np.float64

    def video() -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        clips = int(random.choice([1, 2, 7, 8, 9, 31, 32, 33, int(random.integers(1, 300))]))
        match = (random.normal(size=(n_steps, clips)) * 10.0 ** random.integers(-3, 4)).astype(dtype)
        match[random.random(match.shape) < random.choice([0.0, 0.1, 0.6])] = np.inf
        drop = random.random(clips).astype(dtype)
        drop[random.random(clips) < random.choice([0.0, 0.2])] = np.inf
        skip = random.random(n_steps).astype(dtype)
        skip[random.random(n_steps) < 0.3] = np.inf
        return match, drop, skip if random.random() < 0.5 else None

    contiguous = bool(random.random() < 0.5)
    path = ("hard", "soft", "batch", "automaton", "automaton soft", "orders", "search", "stopped")[index % 8]
    try:
        if path == "hard":
            limit = None if random.random() < 0.5 else int(random.integers(2_000, 200_000))
            g2v.align(flow, *video(), contiguous, method="exact", workers=2, memory_limit=limit)
        elif path == "soft":
            tsort = g2v.TSortGraph.compile(flow)
            videos = [video() for _ in range(int(random.integers(1, 11)))]
            for smoothing in SMOOTHINGS:
                soft_costs(
                    [(tsort, ClipCosts(*costs)) for costs in videos],
                    gamma=float(10.0 ** random.uniform(-3, 2)),
                    smoothing=smoothing,
                    contiguous=contiguous,
                    starts=contiguous and smoothing == "softmin",
                    gradient=bool(random.random() < 0.8),
                    workers=2,
                )
        elif path == "search":
            limit = float(random.random() * 0.05)
            g2v.align(flow, *video(), contiguous, method="anytime", time_limit=limit)
        elif path == "batch":
            videos = [video() for _ in range(int(random.integers(2, 20)))]
            g2v.align_many(flow, *zip(*videos, strict=True), contiguous, workers=2)
        elif path == "stopped":
            with within(float(random.random() * 1e-3)):
                g2v.align(
                    g2v.FlowGraph.bag([str(step) for step in range(13)]),
                    random.random((13, 400)),
                    0.5,
                    method="exact",
                    workers=int(random.integers(1, 3)),
                )
        else:
            few = (
                g2v.FlowGraph.from_edges(
                    [str(step) for step in range(n_steps)],
                    [(a, b, float(random.choice([0.7, 1.0]))) for a, b in flow.edges],
                )
                if n_steps < 7
                else flow
            )
            match, drop, skip = video()
            lengths = Durations(random.random((n_steps, int(random.integers(1, 20)))), random.random(n_steps))
            extras = {
                "repeat": random.random(n_steps) if random.random() < 0.5 and n_steps < 9 else None,
                "durations": lengths if random.random() < 0.5 else None,
            }
            if path == "automaton":
                g2v.align(few, match, drop, skip, **extras)
            elif path == "automaton soft":
                g2v.posterior(few, match, drop, skip, gamma=float(10.0 ** random.uniform(-2, 2)), **extras)
            else:
                g2v.k_best(few, match[:, :40], drop[:40], skip, k=3, **extras)
    except Graph2VidError:
        pass
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=24_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--extension", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.extension is None:
        return run_under_sanitizers(build(), [f"--cases={given.cases}", f"--seed={given.seed}"])
    return min(check(given.extension, given.cases, given.seed), 1)


if __name__ == "__main__":
    sys.exit(main())
