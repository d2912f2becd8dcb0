"""How large a tSort graph will be, said before it is built."""

from __future__ import annotations

import math
from decimal import Decimal

from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph

MAX_IDEALS = 2**31 - 1
"""The arrays of a tSort graph number its ideals in 32 bits."""


WORK = 2**30
"""What may go into counting, in the units of :func:`work_per_ideal`: less than a second."""


def ideals_bound(flow: FlowGraph) -> tuple[int, int]:
    """Bound the number of ideals of a flow graph without building them.

    Every subset of an antichain gives an ideal of its own, and an ideal is fixed by how far it reaches into
    each chain of a cover.

    Parameters
    ----------
    flow : FlowGraph
        The procedure.

    Returns
    -------
    lower, upper : int
        2^width, and Π(chain length + 1) over a minimum chain cover.
    """
    return 2**flow.width, math.prod(len(chain) + 1 for chain in flow.chain_cover())


def work_per_ideal(flow: FlowGraph) -> int:
    """Return about how long an ideal takes to build, in units of which a second has some 1.5 billion."""
    return 600 + len(flow) * ((len(flow) + 63) // 64)


def bytes_per_ideal(flow: FlowGraph) -> int:
    """Return what building a tSort graph takes at most for each ideal: its mask, its states, and working memory."""
    words = (len(flow) + 63) // 64
    return 40 * words + 48 + 16 * flow.width


def too_large(flow: FlowGraph, limit: int, in_memory: bool = False, is_own: bool = False) -> TooLargeError:
    """Return the error that says why ``flow`` has more than ``limit`` ideals, and what to do.

    Parameters
    ----------
    in_memory : bool
        Whether the limit is what fits into the memory that this process may use.
    is_own : bool
        Whether the caller chose the limit: those who call ``align`` or a loss have no ``limit=`` to raise.
    """
    lower, upper = ideals_bound(flow)
    lower = max(lower, limit + 1)
    size = readable(lower) if lower == upper else f"between {readable(lower)} and {readable(upper)}"
    remedies = ["add order between steps", "remove steps"]
    if in_memory:
        remedies.insert(0, "give this process more memory")
    elif is_own and limit < MAX_IDEALS:
        remedies.insert(0, "raise `limit=`")
    bound = f"the {readable(limit)} that fit into memory" if in_memory else f"the limit of {readable(limit)}"
    return TooLargeError(
        f"{len(flow)} steps in {flow.width} parallel threads have {size} legal sets of done steps (ideals), "
        f"more than {bound}: {', '.join(remedies[:-1])}{',' * (len(remedies) > 2)} or {remedies[-1]}"
    )


def readable(number: int) -> str:
    """Return a whole number with thousands separated, or to three digits when it is very large."""
    return f"{number:,}" if abs(number) < 10**15 else f"{Decimal(number):.2e}"
