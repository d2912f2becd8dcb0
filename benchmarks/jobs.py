"""One job of one package, in a process of its own: ``python -m benchmarks.jobs PACKAGE JOB STEPS CLIPS``.

Of a peer it needs that package and NumPy alone, so that it runs in an environment that graph2vid cannot share, too;
`benchmarks.apart` starts it.

After a first call it prints a line of JSON: version, cost (where the job has one) and memory. Then it answers every
line, a number of seconds, with the processor time of the quickest call in about so many seconds.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.memory import call_bytes, peak_bytes
from benchmarks.timing import best_call

LENGTHS = 8  # clips of a segment at the most, in the semi-Markov model
GAMMA = 0.1
DROP = 0.3
NEVER = 1e4  # a cost that leaves nothing of a probability

Call = Callable[[], Any]
Array = Any


def series(steps: int, clips: int) -> tuple[Array, Array, Array]:
    """Return a series for the steps, one for the clips, and their squared differences [K, N], float64."""
    random = np.random.default_rng(0)
    one, other = random.random(steps), random.random(clips)
    return one, other, np.ascontiguousarray((one[:, None] - other) ** 2)


def match_costs(steps: int, clips: int) -> Array:
    """Return uniform match costs [K, N], float64."""
    return np.random.default_rng(0).random((steps, clips))


def length_costs() -> Array:
    """Return what a segment of 1, 2, …, LENGTHS clips costs."""
    return np.log(np.arange(1, LENGTHS + 1) / 6) ** 2


# ---- ours


def _graph2vid(job: str, steps: int, clips: int) -> Call:
    if "contiguous" in job:
        return _automata(job, clips)[0]
    if job in ("cost", "path"):
        return _hard(job, steps, clips)
    if job in ("soft cost", "soft gradient"):
        from graph2vid.alignment import ClipCosts, soft_costs

        given = [(_chain(steps), ClipCosts(match_costs(steps, clips), np.full(clips, DROP), None))]
        options: dict[str, Any] = {"gamma": GAMMA, "smoothing": "softmin", "contiguous": True, "workers": 1}
        return lambda: soft_costs(given, gradient=job == "soft gradient", **options)[0].cost
    return _through_torch(job, steps, clips)


def _chain(steps: int) -> Any:
    from graph2vid.flow import FlowGraph
    from graph2vid.tsort import TSortGraph

    return TSortGraph.compile(FlowGraph.chain([f"step {i}" for i in range(steps)]))


def _hard(job: str, steps: int, clips: int) -> Call:
    from graph2vid.alignment import procedure

    solve = procedure(_chain(steps)).solve
    options: dict[str, Any] = {"contiguous": True, "block": 0, "workers": 1}
    options |= {"cost_only": True, "window": 1} if job == "cost" else {"cost_only": False, "window": 0}
    match, drop = series(steps, clips)[2], np.full(clips, 0.1)
    return lambda: solve(match, drop, None, **options)[0]


def _through_torch(job: str, steps: int, clips: int) -> Call:
    import torch

    from graph2vid.alignment import Durations
    from graph2vid.learn import soft_cost

    model, wanted = job.rsplit(" ", 1)
    dtype = np.float32 if model == "CTC" else np.float64
    match = torch.tensor(match_costs(steps, clips).astype(dtype)[None], requires_grad=wanted == "gradient")
    drop = torch.full((1, clips), NEVER if model in ("linear chain", "semi-Markov") else DROP, dtype=match.dtype)
    options: dict[str, Any] = {"smoothing": "softmin", "contiguous": True}
    options["gamma"] = GAMMA if model == "torch soft" else 1.0
    if model == "semi-Markov":
        options["durations"] = Durations(np.tile(length_costs(), (steps, 1)), np.full(steps, NEVER))
    tsorts = [_chain(steps)]
    return _with_gradient(torch, lambda: soft_cost(tsorts, match, drop, **options).sum(), match)


def _with_gradient(torch: Any, cost: Call, given: Any) -> Call:
    """Return a call of ``cost``, and of its gradient if that is asked of what is given."""
    wanted = given.requires_grad  # now: torch-struct asks it of all that it is given

    def call() -> float:
        with torch.set_grad_enabled(wanted):
            found = cost()
            if wanted:
                torch.autograd.grad(found, given)
            return float(found.detach())

    return call


def _automata(job: str, clips: int) -> tuple[Call, Call, Call]:
    """Return our call, theirs, and theirs with the making of the automaton that holds the video's costs."""
    from benchmarks.cases import CASES
    from benchmarks.fst import Automata
    from graph2vid.alignment import procedure

    case, contiguous = next(case for case in CASES if case.name == "crosstask"), "=True" in job
    ((match, drop),) = case.costs(np.float32, clips)
    solve = procedure(case.tsort).solve
    options: dict[str, Any] = {"contiguous": contiguous, "cost_only": False, "block": 0, "window": 0, "workers": 1}
    automata = Automata(case.tsort, contiguous)
    ready = automata.acceptor(match, drop)
    return (
        lambda: solve(match, drop, None, **options)[0],
        lambda: partial(automata.read, automata.best_path(ready)),
        lambda: partial(automata.read, automata.align(match, drop)),
    )


# ---- the peers


def _kaldifst(job: str, _: int, clips: int) -> Call:
    return _automata(job, clips)[2 if "making" in job else 1]


def _dtaidistance(job: str, steps: int, clips: int) -> Call:
    kernel = import_module("dtaidistance.dtw_cc")
    one, other, _ = series(steps, clips)
    return partial(kernel.distance if job == "cost" else kernel.warping_path, other, one)


def _tslearn(job: str, steps: int, clips: int) -> Call:
    if job in ("cost", "path"):
        hard = import_module("tslearn.metrics._dtw")
        accumulate, trace = hard._njit_acc_matrix_from_dist_matrix, hard._njit_compute_path
        distances = series(steps, clips)[2]
        mask = np.full(distances.shape, True)
        return lambda: accumulate(distances, mask) if job == "cost" else trace(accumulate(distances, mask))
    kernels = import_module("tslearn.metrics.soft_dtw_fast")
    match = match_costs(steps, clips)

    def soft() -> Any:
        table = np.zeros((steps + 2, clips + 2))
        kernels._njit_soft_dtw(match, table, gamma=GAMMA)
        if job == "soft cost":
            return table[steps, clips]
        padded = np.hstack((np.vstack((match, np.zeros(clips))), np.zeros((steps + 1, 1))))
        gradient = np.zeros((steps + 2, clips + 2))
        kernels._njit_soft_dtw_grad(padded, table, gradient, gamma=GAMMA)
        return gradient

    return soft


def _aeon(job: str, steps: int, clips: int) -> Call:
    distances = import_module("aeon.distances")
    one, other, _ = series(steps, clips)
    if job == "soft cost":
        return lambda: distances.soft_dtw_distance(one, other, gamma=GAMMA)
    return partial(distances.dtw_distance if job == "cost" else distances.dtw_alignment_path, other, one)


def _pysdtw(job: str, steps: int, clips: int) -> Call:
    torch, package = import_module("torch"), import_module("pysdtw")
    distances = torch.tensor(match_costs(steps, clips)[None], requires_grad=job.endswith("gradient"))
    soft_dtw = package.SoftDTW(gamma=GAMMA, dist_func=lambda *_: distances, use_cuda=False)
    rows, columns = (torch.zeros(1, length, 1, dtype=distances.dtype) for length in (steps, clips))
    return _with_gradient(torch, lambda: soft_dtw(rows, columns).sum(), distances)


def _k2(job: str, steps: int, clips: int) -> Call:
    """CTC is a chain with background: blank is the background, and no label comes twice."""
    torch, k2 = import_module("torch"), import_module("k2")
    costs = np.vstack((np.full(clips, DROP), match_costs(steps, clips))).astype(np.float32)
    scores = torch.tensor(-costs.T[None].copy(), requires_grad=job.endswith("gradient"))
    graph = k2.ctc_graph([list(range(1, steps + 1))])
    whole = torch.tensor([[0, 0, clips]], dtype=torch.int32)

    def cost() -> Any:
        lattice = k2.intersect_dense(graph, k2.DenseFsaVec(scores, whole), output_beam=1e10)
        return -lattice.get_tot_scores(log_semiring=True, use_double_scores=True).sum()

    return _with_gradient(torch, cost, scores)


def _torch_struct(job: str, steps: int, clips: int) -> Call:
    torch, package = import_module("torch"), import_module("torch_struct")
    linear = job.startswith("linear")
    field = package.LinearChainCRF if linear else package.SemiMarkovCRF
    potentials = (linear_potentials if linear else semi_markov_potentials)(steps, clips)
    given = torch.tensor(potentials[None], requires_grad=job.endswith("gradient"))
    return _with_gradient(torch, lambda: -field(given).partition.sum(), given)


def linear_potentials(steps: int, clips: int) -> Array:
    """Return log potentials [clip, label, label before] of a chain: each label follows itself or the one before it."""
    match = match_costs(steps, clips)
    allowed = np.eye(steps, dtype=bool) | np.eye(steps, k=-1, dtype=bool)
    potentials = np.where(allowed, -match.T[1:, :, None], -NEVER)
    potentials[0] -= match[:, 0]
    potentials[0, :, 1:] = -NEVER  # the first clip has the first label
    potentials[-1, :-1] = -NEVER
    return potentials


def semi_markov_potentials(steps: int, clips: int) -> Array:
    """Return log potentials [start, length, label after, label] of a chain of segments; no length is 0."""
    total = np.hstack((np.zeros((steps, 1)), match_costs(steps, clips).cumsum(axis=1)))
    potentials = np.full((clips, LENGTHS + 1, steps, steps), -NEVER)
    for start in range(clips):
        for length in range(1, min(LENGTHS, clips - start) + 1):
            costs = total[:, start + length] - total[:, start] + length_costs()[length - 1]
            for label in range(steps):
                last = label == steps - 1
                if (start == 0) == (label == 0) and (start + length == clips) == last:
                    potentials[start, length, 0 if last else label + 1, label] = -costs[label]
    return potentials


PACKAGES: dict[str, Callable[[str, int, int], Call]] = {
    "graph2vid": _graph2vid,
    "dtaidistance": _dtaidistance,
    "tslearn": _tslearn,
    "aeon": _aeon,
    "pysdtw": _pysdtw,
    "kaldifst": _kaldifst,
    "k2": _k2,
    "torch-struct": _torch_struct,
}


def serve(make: Callable[[], Call], about: dict[str, Any]) -> None:
    """Make a job and answer on standard output as said above; what packages print there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(found: object) -> None:
        print(json.dumps(found), file=answers, flush=True)

    call = make()
    cost = call()
    about |= {"process_bytes": peak_bytes(), "bytes": call_bytes(call)}
    if callable(cost):  # what reads the cost of a path, which is not timed
        cost = cost()[0]
    answer(about | {"cost": cost if isinstance(cost, float) else None})
    gc.disable()
    for line in sys.stdin:
        gc.collect()
        answer(best_call(call, float(line), time.process_time))


if __name__ == "__main__":
    package, job, *size = sys.argv[1:]
    steps, clips = map(int, size)
    serve(lambda: PACKAGES[package](job, steps, clips), {"version": version(package)})
