"""The extended model on the GPU: softmin over all alignments of each video of a batch, and its gradients."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graph2vid.alignment import AutomatonProblem
from graph2vid.errors import TooLargeError
from graph2vid.learn.cuda.compiler import Module, compile_cuda
from graph2vid.learn.cuda.cuda_costs import Costs, _free, _stream
from graph2vid.tsort import Automaton

SIZES = ("nodes", "states", "steps", "longest", "video", "clips")
STATES = ("state_start", "state_node", "state_step")
LINKS = ("arc_start", "arc_from", "out_start", "out_state", "of_start", "of_state")
COSTS = ("arc", "out", "again", "end", "length", "tail")


class VideoStruct(ctypes.Structure):
    """``Video`` of in_automaton.cu."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in SIZES),
        *((name, ctypes.c_uint64) for name in (*STATES, *LINKS, *COSTS, "memory")),
    )


class AutomataStruct(ctypes.Structure):
    """``Automata`` of in_automaton.cu."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("videos", "match", "drop")),
        *((name, ctypes.c_int32) for name in ("rows", "columns")),
        ("gamma", ctypes.c_double),
        *((name, ctypes.c_uint64) for name in ("cost", "match_grad", "drop_grad")),
    )


class Arcs:
    """An automaton as the kernels read it, and where its costs belong.

    Attributes
    ----------
    arrays : dict of str to int32 array
    enters : array of int
        Which arcs enter a state from another node, in the order of states.
    leaves : array of int
        The same arcs in the order of the nodes that they come from.
    repeats : array of int
        Which arcs repeat a step.
    """

    def __init__(self, automaton: Automaton) -> None:
        of_arc, node_of = automaton.state_of_arc, automaton.node_of_state
        again = automaton.arc_from == node_of[of_arc]
        self.enters, self.repeats = np.flatnonzero(~again), np.flatnonzero(again)
        self.leaves = self.enters[np.argsort(automaton.arc_from[self.enters], kind="stable")]
        self.repeated = of_arc[self.repeats]
        arrays: dict[str, NDArray[Any]] = {
            "state_start": automaton.state_start,
            "state_node": node_of,
            "state_step": automaton.state_step,
            "arc_start": _starts(of_arc[self.enters], automaton.n_states),
            "arc_from": automaton.arc_from[self.enters],
            "out_start": _starts(automaton.arc_from[self.enters], automaton.n_nodes),
            "out_state": of_arc[self.leaves],
            "of_start": _starts(automaton.state_step, len(automaton.flow)),
            "of_state": np.argsort(automaton.state_step, kind="stable"),
        }
        self.arrays: dict[str, NDArray[np.int32]] = {name: values.astype(np.int32) for name, values in arrays.items()}

    def costs(self, problem: AutomatonProblem) -> dict[str, NDArray[np.float64]]:
        """Return the costs of arcs, ends and lengths as the kernels read them."""
        again = np.full(problem.automaton.n_states, np.inf)
        again[self.repeated] = problem.arc[self.repeats]
        return {
            "arc": problem.arc[self.enters].astype(np.float64),
            "out": problem.arc[self.leaves].astype(np.float64),
            "again": again,
            "end": problem.end.astype(np.float64),
            "length": np.ascontiguousarray(problem.length.T, np.float64).ravel(),
            "tail": problem.tail.astype(np.float64),
        }


def _starts(sorted_by: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Return where the things of each of ``count`` owners begin, [count + 1]."""
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_by, minlength=count))])


_arcs: WeakKeyDictionary[Automaton, Arcs] = WeakKeyDictionary()
_on_device: WeakKeyDictionary[Automaton, dict[torch.device, tuple[Tensor, dict[str, int]]]] = WeakKeyDictionary()


def arcs_of(automaton: Automaton) -> Arcs:
    """Return an automaton as the kernels read it, made once."""
    if automaton not in _arcs:
        _arcs[automaton] = Arcs(automaton)
    return _arcs[automaton]


def table_numbers(automaton: Automaton, clips: int) -> int:
    """Return how many numbers the tables of one video hold."""
    nodes, states = automaton.n_nodes, automaton.n_states
    return 1 + (clips + 1) * (4 * states + nodes) + 4 * states + 2 * nodes


@cache
def _module(device: int, double: bool) -> Module:
    major, minor = torch.cuda.get_device_capability(device)
    code = Path(__file__).with_name("in_automaton.cu").read_text()
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", f"-DDOUBLE={int(double)}"]
    compiled = compile_cuda(code, "in_automaton.cu", options)
    with torch.cuda.device(device):
        return Module(compiled)


def automata_on_gpu(
    problems: Sequence[AutomatonProblem],
    match: Tensor,
    drop: Tensor,
    lengths: Sequence[int],
    *,
    gamma: float,
    gradient: bool,
) -> Costs:
    """Return the softmin over all alignments of each video of a padded batch.

    Parameters
    ----------
    problems : sequence of B AutomatonProblem
        Of each video the automaton and all costs but those of its clips.
    match, drop : Tensor [B, K, N], [B, N]
        On one GPU, float32 or float64 both; computed in float64.
    lengths : sequence of B int
    gamma : float
    gradient : bool
        Whether those by match and drop are wanted.
    """
    with torch.cuda.device(match.device):
        batch = _Batch(problems, match.contiguous(), drop.contiguous(), lengths)
        found = Costs(match.new_empty(len(problems)))
        if gradient:
            found = Costs(found.cost, torch.zeros_like(batch.match), torch.zeros_like(batch.drop))
        for part in parts_of(batch.sizes, _free(match.device) // 16):
            batch.run(part, found, gamma)
        return found


def parts_of(sizes: Sequence[int], most: int) -> Iterator[range]:
    """Yield videos whose tables together are at most so large; a `TooLargeError` names one that is larger alone."""
    first = taken = 0
    for at, size in enumerate(sizes):
        if size > most:
            raise TooLargeError(
                f"the tables of one video need {8 * size / 2**30:.1f} GiB of GPU memory; {most / 2**27:.1f} GiB are "
                "to be had: cut the video or the procedure"
            )
        if taken + size > most:
            yield range(first, at)
            first, taken = at, 0
        taken += size
    yield range(first, len(sizes))


class _Batch:
    """Videos, and where their automata are on the device."""

    def __init__(
        self, problems: Sequence[AutomatonProblem], match: Tensor, drop: Tensor, lengths: Sequence[int]
    ) -> None:
        self.problems, self.match, self.drop, self.lengths = problems, match, drop, lengths
        pairs = zip(problems, lengths, strict=True)
        self.sizes = [table_numbers(one.automaton, clips) for one, clips in pairs]
        self._kept: list[Tensor] = []
        known: dict[int, dict[str, int]] = {}
        for problem in problems:
            if id(problem) not in known:
                known[id(problem)] = self._put(problem)
        self.places = [known[id(problem)] for problem in problems]

    def _put(self, problem: AutomatonProblem) -> dict[str, int]:
        """Return where the arrays of a problem are: those of an automaton stay there as long as it is used."""
        device, arcs = self.match.device, arcs_of(problem.automaton)
        kept = _on_device.setdefault(problem.automaton, {})
        if device not in kept:
            kept[device] = _in_one_piece(arcs.arrays.items(), device)
        costs, places = _in_one_piece(arcs.costs(problem).items(), device)
        self._kept.append(costs)
        return kept[device][1] | places

    def run(self, part: range, found: Costs, gamma: float) -> None:
        """Compute costs, and gradients where there is room for them."""
        device, match = self.match.device, self.match
        memory = torch.empty(sum(self.sizes[at] for at in part), dtype=torch.float64, device=device)
        structs, place, widest = bytearray(), memory.data_ptr(), 1
        for at in part:
            automaton, longest = self.problems[at].automaton, self.problems[at].length.shape[1]
            of = (automaton.n_nodes, automaton.n_states, len(automaton.flow), longest, at, self.lengths[at])
            structs += bytes(VideoStruct(*of, **self.places[at], memory=place))
            place, widest = place + 8 * self.sizes[at], max(widest, automaton.n_states)
        videos = torch.frombuffer(structs, dtype=torch.uint8).to(device)
        batch = AutomataStruct(videos.data_ptr(), match.data_ptr(), self.drop.data_ptr(), *match.shape[1:], gamma)
        batch.cost = found.cost.data_ptr()
        if found.match is not None and found.drop is not None:
            batch.match_grad, batch.drop_grad = found.match.data_ptr(), found.drop.data_ptr()
        threads = min(1024, -(-widest // 32) * 32)
        module = _module(device.index, match.dtype == torch.float64)
        for name in ("forward", "backward") if found.match is not None else ("forward",):
            module.kernel(name, threads, 8 * threads).launch(len(part), _stream(device.index), batch)


def _in_one_piece(arrays: Iterable[tuple[str, NDArray[Any]]], device: torch.device) -> tuple[Tensor, dict[str, int]]:
    """Copy arrays of one dtype to the device; return them in one piece, and where each begins."""
    names, parts = zip(*arrays, strict=True)
    whole = torch.from_numpy(np.concatenate(parts)).to(device)
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return whole, {name: whole.data_ptr() + whole.itemsize * at for name, at in zip(names, ends, strict=False)}
