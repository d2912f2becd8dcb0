"""Closed formulas for separate threads of steps under one added root, and the speed-up they show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph


def even_threads(n_steps: int, n_threads: int) -> tuple[int, ...]:
    """Split ``n_steps`` steps over threads whose lengths differ by at most one, the longer ones first."""
    if not 1 <= n_threads <= n_steps:
        raise InputError(f"{n_steps} steps cannot fill {n_threads} threads: there must be 1 to {n_steps} of them")
    short, longer = divmod(n_steps, n_threads)
    return (short + 1,) * longer + (short,) * (n_threads - longer)


def thread_flow(lengths: Sequence[int]) -> FlowGraph:
    """Return the flow graph of separate threads with these numbers of steps."""
    texts: list[str] = []
    edges: list[tuple[int, int]] = []
    for thread, length in enumerate(lengths, start=1):
        edges.extend((len(texts) + i, len(texts) + i + 1) for i in range(length - 1))
        texts.extend(f"thread {thread}, step {i}" for i in range(1, length + 1))
    return FlowGraph.from_edges(texts, edges)


@dataclass(frozen=True)
class ThreadFigures:
    """What T separate threads of n₁ … n_T ≥ 1 steps cost, by closed formulas.

    Attributes
    ----------
    lengths : tuple of int
        Steps of each thread.
    """

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.lengths or any(length < 1 for length in self.lengths):
            raise InputError(f"every thread needs at least one step, and there must be one: {list(self.lengths)}")

    @property
    def n_steps(self) -> int:
        """n = Σ n_t."""
        return sum(self.lengths)

    @property
    def n_sorts(self) -> int:
        """Topological sorts: n! / (n₁! … n_T!)."""
        return math.factorial(self.n_steps) // math.prod(map(math.factorial, self.lengths))

    @property
    def n_ideals(self) -> int:
        """Legal sets of done steps: Π (n_t + 1)."""
        return math.prod(length + 1 for length in self.lengths)

    @property
    def n_nodes(self) -> int:
        """Nodes of the tSort graph, root counted and no sink: 1 + Σ_t n_t Π_{j≠t} (n_j + 1)."""
        return 1 + sum(length * self.n_ideals // (length + 1) for length in self.lengths)

    @property
    def speed_up(self) -> Fraction:
        """The ratio ρ of :func:`speed_up`."""
        return speed_up(self.n_sorts, self.n_steps, self.n_nodes, len(self.lengths))


def speed_up(n_sorts: int, n_steps: int, n_nodes: int, n_threads: int) -> Fraction:
    """Return ρ = N_ts·|V_G| / (T·|V_S|): the work of trying every sort against that of the tSort graph.

    Parameters
    ----------
    n_sorts : int
        Topological sorts, N_ts.
    n_steps : int
        Steps without the added root; |V_G| is one more.
    n_nodes : int
        Nodes of the tSort graph, root counted and no sink, |V_S|.
    n_threads : int
        Threads, T: a bound on the predecessors of a node.
    """
    return Fraction(n_sorts * (n_steps + 1), n_threads * n_nodes)


def log10(ratio: Fraction) -> float:
    """Return the decimal logarithm of a ratio of any size."""
    return math.log10(ratio.numerator) - math.log10(ratio.denominator)
