"""Counts of the steps that a video shows, of those that it should: counted here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graph2vid.flow import FlowGraph


@dataclass(frozen=True)
class StepCount:
    """Steps of a procedure by whether a video shows them, and why others need not be shown.

    Attributes
    ----------
    shown : tuple of int
        The steps that are shown, doubtful or not, sorted.
    missing : tuple of int
        Steps that are not shown, although the procedure wants them. Of alternatives none of which is shown, the first
        branch is wanted.
    optional : tuple of int
        Optional steps that are not shown.
    untaken : tuple of int
        Steps of other branches than the one that is wanted.
    doubtful : tuple of int
        Shown steps all of whose segments are doubtful.
    """

    shown: tuple[int, ...]
    missing: tuple[int, ...]
    optional: tuple[int, ...]
    untaken: tuple[int, ...]
    doubtful: tuple[int, ...] = ()

    @property
    def wanted(self) -> int:
        """The number of steps that the procedure wants of this video: shown or missing."""
        return len(self.shown) + len(self.missing)

    def __str__(self) -> str:
        words = [f"{len(self.shown)} of {self.wanted} steps shown"]
        if self.doubtful:
            words.append(f"{len(self.doubtful)} doubtful")
        if self.optional:
            words.append(f"{len(self.optional)} optional left out")
        if self.untaken:
            words.append(f"{len(self.untaken)} of branches not taken")
        return ", ".join(words)

    def to_json(self) -> dict[str, int]:
        """Return the numbers, for JSON."""
        sizes = {key: len(steps) for key, steps in vars(self).items()}
        return {"shown": sizes["shown"], "wanted": self.wanted, **sizes}


def count_steps(flow: FlowGraph, shown: Iterable[int], doubtful: Iterable[int] = ()) -> StepCount:
    """Sort the steps of a procedure by whether a video shows them, and whether it should.

    Parameters
    ----------
    flow : FlowGraph
        The procedure.
    shown : iterable of int
        The steps that are shown, in any order.
    doubtful : iterable of int
        Those of them that are doubtful.
    """
    there, unsure = set(shown), set(doubtful)
    untaken: set[int] = set()
    for group in flow.alternatives:
        taken = [branch for branch in group if there & {*branch}] or [group[0]]
        untaken.update(step for branch in group if branch not in taken for step in branch)
    absent = set(range(len(flow))) - there - untaken
    optional = absent & {*flow.optional}
    return StepCount(*(tuple(sorted(steps)) for steps in (there, absent - optional, optional, untaken, unsure)))
