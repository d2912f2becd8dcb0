"""Alternatives beyond exact reach: a choice of branches that is good, and how far from the best it can be.

Where all branches may be shown or left out freely, the cheapest alignment costs at most what the best choice does: that
is the bound. It says which branches the video seems to show; they are chosen, and then changed one by one as long as
that helps and there is time.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from graph2vid.alignment import anytime
from graph2vid.alignment.alignment_result import BACKGROUND, Labels
from graph2vid.alignment.anytime import TIME_LIMIT, Answer
from graph2vid.alignment.backends import Resources
from graph2vid.alignment.clip_costs import ClipCosts
from graph2vid.errors import TooLargeError
from graph2vid.flow import FlowGraph, bits


def solve(flow: FlowGraph, costs: ClipCosts, resources: Resources) -> Answer:
    """Choose branches and align what is left, until the choice is proven, cannot be bettered step by step, or the
    time is up.

    Parameters
    ----------
    flow : FlowGraph
        With alternatives; all edges count as certain.
    costs, resources
        As for :func:`graph2vid.alignment.anytime.solve`.
    """
    return _Search(flow, costs, resources).run()


class _Search:
    def __init__(self, flow: FlowGraph, costs: ClipCosts, resources: Resources) -> None:
        self.flow, self.costs, self.resources = flow, costs, resources
        self.seconds = resources.time_limit or TIME_LIMIT
        self.ends = time.monotonic() + self.seconds
        self.in_group = sorted({step for group in flow.alternatives for branch in group for step in branch})

    def _time_left(self) -> float:
        return max(self.ends - time.monotonic(), 1e-3)

    def run(self) -> Answer:
        steps = np.arange(len(self.flow))
        free = np.full(len(steps), np.inf) if self.costs.skip is None else self.costs.skip.copy()
        free[self.in_group] = np.minimum(free[self.in_group], 0.0)
        relaxed = self._plain(steps, free, self.seconds / 3)
        lower = relaxed.cost - relaxed.gap
        if not np.isfinite(lower):
            return Answer(np.inf, None, 0.0, {"method": "anytime", "gap": 0.0})
        chosen = self._shown(relaxed.labels)
        best = self._with(chosen)
        better = True
        while better and best.cost > lower and time.monotonic() < self.ends:
            better = False
            for number, group in enumerate(self.flow.alternatives):
                for branch in range(len(group)):
                    if branch == chosen[number] or time.monotonic() >= self.ends:
                        continue
                    other = [*chosen[:number], branch, *chosen[number + 1 :]]
                    found = self._with(other)
                    if found.cost < best.cost:
                        best, chosen, better = found, other, True
        if best.labels is None:
            raise TooLargeError(
                f"no choice of alternatives with an alignment was found in {self.seconds:g} s: raise time_limit, or "
                "choose some of them"
            )
        gap = max(best.cost - lower, 0.0)
        options: dict[str, Any] = {
            "method": "anytime",
            "gap": gap,
            "lower_bound": best.cost - gap,
            "branches": [list(group[at]) for group, at in zip(self.flow.alternatives, chosen, strict=True)],
        }
        return Answer(best.cost, best.labels, gap, options)

    def _shown(self, labels: Labels | None) -> list[int]:
        """Return the branch of each group that an alignment shows best: that saves most against background."""
        saved = np.zeros(len(self.flow) + 1)
        if labels is not None:
            shown = np.flatnonzero(labels >= 0)
            drop = self.costs.drop[shown]
            gain = np.where(np.isfinite(drop), drop - self.costs.match[labels[shown], shown], 1.0)
            np.add.at(saved, labels[shown], gain)
        return [
            max(range(len(group)), key=lambda at: (saved[list(group[at])].sum(), -at))
            for group in self.flow.alternatives
        ]

    def _with(self, chosen: list[int]) -> Answer:
        """Align with one branch of each group taken; what that shows, and what it costs."""
        groups = self.flow.alternatives
        gone = {
            step
            for group, at in zip(groups, chosen, strict=True)
            for number, branch in enumerate(group)
            if number != at
            for step in branch
        }
        steps = np.array([step for step in range(len(self.flow)) if step not in gone])
        skip = None if self.costs.skip is None else self.costs.skip[steps]
        return self._plain(steps, skip, self._time_left())

    def _plain(self, steps: Any, skip: Any, seconds: float) -> Answer:
        """Align some of the steps, in the order that holds among them: exactly, or by a search."""
        place = {int(step): at for at, step in enumerate(steps)}
        edges = [(place[a], place[b]) for a in place for b in bits(self.flow.descendants[a]) if b in place]
        flow = FlowGraph.from_edges([str(step) for step in steps], edges).transitive_reduction()
        costs = ClipCosts(np.ascontiguousarray(self.costs.match[steps]), self.costs.drop, skip)
        found = anytime.solve_quickly(flow, costs, self.resources._replace(time_limit=seconds))
        if found.labels is None:
            return found
        return Answer(found.cost, np.append(steps, BACKGROUND)[found.labels], found.gap, found.options)
