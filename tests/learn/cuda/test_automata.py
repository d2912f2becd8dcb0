"""The kernels of the extended model: they compile to PTX, and as C++, their threads emulated, they are right."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

import graph2vid as g2v  # noqa: E402
from emulated import PRELUDE  # noqa: E402
from graph2vid.alignment import ClipCosts, Durations, Problem  # noqa: E402
from graph2vid.errors import InfeasibleError, TooLargeError  # noqa: E402
from graph2vid.learn.cuda import CudaError, compile_cuda, cuda_automata  # noqa: E402
from graph2vid.learn.cuda.compiler import nvrtc  # noqa: E402
from graph2vid.learn.cuda.cuda_automata import AutomataStruct, VideoStruct, arcs_of, parts_of, table_numbers  # noqa: E402

THREADS = 64
SOURCE = Path(cuda_automata.__file__).with_name("in_automaton.cu")
CALLS = """
extern "C" int run(const Automata *all, int videos, unsigned threads) {
    const int status = emulator::run(videos, 1, threads, 8 * threads, 0, [=] { forward(*all); });
    return status ? status : emulator::run(videos, 1, threads, 8 * threads, 0, [=] { backward(*all); });
}
"""


@pytest.mark.parametrize("double", [0, 1])
def test_they_compile_to_ptx(double: int) -> None:
    try:
        nvrtc()
    except CudaError as error:
        pytest.skip(str(error))
    options = ["--gpu-architecture=compute_80", "--std=c++17", f"-DDOUBLE={double}"]
    ptx = compile_cuda(SOURCE.read_text(), SOURCE.name, options).decode()
    entries = {line.split()[2].split("(")[0] for line in ptx.splitlines() if line.startswith(".visible .entry")}
    assert entries == {"forward", "backward"}


@pytest.fixture(scope="module", params=[0, 1], ids=["float32", "float64"])
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, type]:
    if not sys.platform.startswith("linux") or shutil.which("g++") is None:
        pytest.skip("this needs g++ and Linux")
    folder = tmp_path_factory.mktemp("kernels")
    code = SOURCE.read_text().replace("extern __shared__ double shared[];", "double *shared = emulator::memory;")
    (folder / "kernels.cpp").write_text(f"{PRELUDE.read_text()}{code}{CALLS}")
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-DDOUBLE={request.param}", "kernels.cpp"]
    subprocess.run([*command, "-o", "kernels.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so")), (np.float32, np.float64)[request.param]


def random_problem(random: np.random.Generator, dtype: type) -> Problem:
    """Return a small problem of the extended model."""
    steps, clips = int(random.integers(1, 5)), int(random.integers(1, 9))
    pairs = [(a, b) for a in range(steps) for b in range(a + 1, steps) if random.random() < 0.4]
    flow = g2v.FlowGraph.from_edges([f"step {at}" for at in range(steps)], pairs)
    if pairs and random.random() < 0.5:
        flow = flow.with_confidence({pairs[0]: 0.8})
    match, drop = random.normal(size=(steps, clips)), random.normal(size=clips)
    match[random.random(match.shape) < 0.1] = np.inf
    skip = np.where(random.random(steps) < 0.5, random.random(steps), np.inf) if random.random() < 0.5 else None
    repeat = np.where(random.random(steps) < 0.5, random.random(steps), np.inf) if random.random() < 0.6 else None
    durations: Durations | int | None = None
    if random.random() < 0.6:
        longest = int(random.integers(1, 5))
        length = np.where(random.random((steps, longest)) < 0.2, np.inf, random.random((steps, longest)))
        length[:, -1] = 0.0
        durations = Durations(length, random.random(steps))
    if repeat is None and durations is None:
        repeat = random.random(steps)
    return Problem(flow, match.astype(dtype), drop.astype(dtype), skip, repeat, durations)


def run(library: Any, problem: Problem, dtype: type, gamma: float) -> tuple[float, Any, Any]:
    """Return cost and gradients by match and drop as the kernels find them; beside the video lies padding."""
    (steps, clips), costs = problem.costs.match.shape, problem.costs
    asked = problem.on_automaton(costs)
    arcs = arcs_of(asked.automaton)
    arrays = arcs.arrays | arcs.costs(asked)
    memory = np.full(table_numbers(asked.automaton, clips) + 1, 7.25)
    of = (asked.automaton.n_nodes, asked.automaton.n_states, steps, asked.length.shape[1], 0, clips)
    places = {name: array.ctypes.data for name, array in arrays.items()}
    video = VideoStruct(*of, **places, memory=memory.ctypes.data)
    match, drop = np.full((steps + 1, clips + 2), np.nan, dtype), np.full(clips + 2, np.nan, dtype)
    match[:steps, :clips], drop[:clips] = costs.match, costs.drop
    cost, match_grad, drop_grad = np.zeros(1, dtype), np.zeros_like(match), np.zeros_like(drop)
    batch = AutomataStruct(ctypes.addressof(video), match.ctypes.data, drop.ctypes.data, *match.shape, gamma)
    batch.cost, batch.match_grad, batch.drop_grad = cost.ctypes.data, match_grad.ctypes.data, drop_grad.ctypes.data
    assert library.run(ctypes.byref(batch), 1, THREADS) == 0
    assert memory[-1] == 7.25  # nothing is written behind the tables
    assert not match_grad[steps:].any() and not match_grad[:, clips:].any() and not drop_grad[clips:].any()
    return float(cost[0]), match_grad[:steps, :clips], drop_grad[:clips]


@pytest.mark.parametrize("seed", range(60))
def test_they_agree_with_the_automaton_on_the_cpu(kernels: tuple[Any, type], seed: int) -> None:
    library, dtype = kernels
    random = np.random.default_rng(seed)
    problem, gamma = random_problem(random, dtype), float(random.choice([0.05, 0.3, 1.0, 4.0]))
    cost, by_match, by_drop = run(library, problem, dtype, gamma)
    try:
        wanted = problem.posterior(gamma)
    except InfeasibleError:
        assert cost == np.inf and not by_match.any() and not by_drop.any()
        return
    near = 1e-10 if dtype is np.float64 else 1e-5
    assert cost == pytest.approx(wanted.cost, rel=near, abs=near)
    np.testing.assert_allclose(by_match, wanted.probability[:-1], atol=near)
    np.testing.assert_allclose(by_drop, wanted.probability[-1], atol=near)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
@pytest.mark.parametrize("where", ["match", "drop"])
def test_what_is_no_cost_makes_the_cost_nan(kernels: tuple[Any, type], where: str, bad: float) -> None:
    library, dtype = kernels
    problem = Problem(g2v.FlowGraph.bag(["a", "b"]), np.zeros((2, 4), dtype), np.zeros(4, dtype), repeat=1.0)
    spoilt = ClipCosts(problem.costs.match.copy(), problem.costs.drop.copy(), None)
    getattr(spoilt, where)[..., 1] = bad
    cost, by_match, by_drop = run(library, problem.of_clips(spoilt), dtype, 1.0)
    assert np.isnan(cost) and not by_match.any() and not by_drop.any()


def test_a_batch_is_done_in_parts_that_fit() -> None:
    assert list(parts_of([3, 3, 3, 9, 1], 9)) == [range(3), range(3, 4), range(4, 5)]
    with pytest.raises(TooLargeError, match="the tables of one video need"):
        list(parts_of([3, 10], 9))
