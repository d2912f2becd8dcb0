"""The soft recursion in torch, as it is written down: the oracle that autograd differentiates.

Slow (a Python loop over the clips), and vectorised over the states. The compiled kernels give the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graph2vid.tsort import TSortGraph


def softmin(values: Tensor, gamma: float) -> Tensor:
    """Return -γ log Σ exp(-a/γ) over the last axis; +inf is left out, and nothing left over gives +inf."""
    least, weights, _ = _weigh(values, gamma)
    total = weights.sum(-1)
    finite = total > 0
    return torch.where(finite, least - gamma * torch.log(torch.where(finite, total, 1.0)), math.inf)


def smoothmin(values: Tensor, gamma: float) -> Tensor:
    """Return Σ a exp(-a/γ) / Σ exp(-a/γ) over the last axis; +inf is left out, and nothing left over gives +inf."""
    least, weights, distances = _weigh(values, gamma)
    total = weights.sum(-1)
    finite = total > 0
    mean = (weights * distances).sum(-1) / torch.where(finite, total, 1.0)
    return torch.where(finite, least + mean, math.inf)


def _weigh(values: Tensor, gamma: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the least number of each set, and of each element exp(-(a - least)/γ) and a - least; 0 where a is +inf."""
    finite = torch.isfinite(values)
    lowest = values.detach().amin(-1, keepdim=True)
    lowest = torch.where(torch.isfinite(lowest), lowest, 0.0)
    distances = torch.where(finite, values, lowest) - lowest
    return lowest.squeeze(-1), torch.where(finite, torch.exp(-distances / gamma), 0.0), distances


SMOOTHINGS = {"softmin": softmin, "smoothmin": smoothmin}


@dataclass(frozen=True)
class _Tables:
    """The tSort graph as index arrays; sets are padded with an index that stands for +inf.

    Attributes
    ----------
    step : int64 [S]
        The step of each state.
    members : int64 [I, m]
        The states of each ideal; S is the start (of the empty ideal alone), S + 1 stands for +inf.
    entries : int64 [S, E]
        The ideals that each state is entered from; I stands for +inf.
    waived : float64 [S, E, K]
        Which steps are waived on entering.
    ends : float64 [I, K]
        Which steps are waived by ending with each ideal.
    """

    step: Tensor
    members: Tensor
    entries: Tensor
    waived: Tensor
    ends: Tensor


@lru_cache(maxsize=64)
def _tables(tsort: TSortGraph, skips: bool) -> _Tables:
    flow, n_states, n_ideals = tsort.flow, tsort.n_states, tsort.n_ideals
    done = [_mask(tsort.masks[ideal]) for ideal in range(n_ideals)]
    states = [list(range(tsort.state_start[ideal], tsort.state_start[ideal + 1])) for ideal in range(n_ideals)]
    states[0] = [n_states]
    entries: list[list[tuple[int, int]]] = []
    for state in range(n_states):
        base = int(tsort.state_from[state])
        found = [(base, 0)]
        if skips:  # a step's missing ancestors are waived when it begins
            before = flow.ancestors[int(tsort.state_step[state])]
            found += [
                (ideal, missing)
                for ideal in range(n_ideals)
                if done[ideal] & ~done[base] == 0 and (missing := done[base] & ~done[ideal]) and missing & ~before == 0
            ]
        entries.append(found)
    everything = (1 << len(flow)) - 1
    return _Tables(
        torch.from_numpy(tsort.state_step.astype(np.int64)),
        _padded(states, n_states + 1),
        _padded([[ideal for ideal, _ in found] for found in entries], n_ideals),
        torch.stack([_bits([missing for _, missing in found], max(map(len, entries)), len(flow)) for found in entries]),
        _bits([everything & ~mask for mask in done], n_ideals, len(flow)),
    )


def _mask(words: NDArray[np.uint64]) -> int:
    return sum(int(word) << (64 * place) for place, word in enumerate(words))


def _padded(rows: list[list[int]], padding: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [padding] * (width - len(row)) for row in rows])


def _bits(masks: list[int], length: int, steps: int) -> Tensor:
    """Return 0 and 1, float64 [length, steps]."""
    rows = [[float(mask >> step & 1) for step in range(steps)] for mask in masks]
    return torch.tensor(rows + [[0.0] * steps] * (length - len(rows)), dtype=torch.float64)


def reference_cost(
    tsort: TSortGraph,
    match: Tensor,
    drop: Tensor,
    skip: Tensor | None = None,
    *,
    gamma: float = 0.1,
    smoothing: str = "smoothmin",
    contiguous: bool = False,
) -> Tensor:
    """Return the soft cost of one video.

    Parameters
    ----------
    tsort : TSortGraph
    match : Tensor [K, N]
    drop : Tensor [N]
    skip : Tensor [K], optional
        +inf: the step must appear.
    gamma : float
    smoothing : {"softmin", "smoothmin"}
    contiguous : bool

    Returns
    -------
    Tensor []
        +inf where no alignment is possible.
    """
    soft = SMOOTHINGS[smoothing]
    tables = _tables(tsort, skip is not None)
    infinite = match.new_full((1,), math.inf)

    def cost(waived: Tensor) -> Tensor:
        if skip is None:
            return torch.where(waived.any(-1), math.inf, 0.0).to(match)
        return torch.where(waived > 0, skip, 0.0).sum(-1)

    entered, ended = cost(tables.waived), cost(tables.ends)

    def by_ideal(states: Tensor, start: Tensor) -> Tensor:
        """Return the values of the states of each ideal, and one row of +inf more: [I + 1, m]."""
        found = torch.cat([states, start, infinite])[tables.members]
        return torch.cat([found, infinite.expand(1, found.shape[1])])

    states = match.new_full((tsort.n_states,), math.inf)
    if contiguous:
        best = match.new_full((tsort.n_ideals,), math.inf)
        best[0] = 0.0
        for clip in range(match.shape[1]):
            sources = torch.cat([best, infinite])[tables.entries] + entered
            states = match[tables.step, clip] + soft(torch.cat([sources, states[:, None]], -1), gamma)
            rest = drop[clip] + best
            best = soft(torch.cat([by_ideal(states, infinite)[:-1], rest[:, None]], -1), gamma)
        return soft(best + ended, gamma)
    start = match.new_zeros(1)
    for clip in range(match.shape[1]):
        sources = (by_ideal(states, start)[tables.entries] + entered[..., None]).flatten(1)
        shown = match[tables.step, clip] + soft(torch.cat([sources, states[:, None]], -1), gamma)
        states = soft(torch.stack([shown, drop[clip] + states], -1), gamma)
        start = drop[clip] + start
    return soft((by_ideal(states, start)[:-1] + ended[:, None]).flatten(), gamma)
