"""tSort graphs: every legal order of a procedure packed into one graph, its sizes, and exact counts."""

from __future__ import annotations

from graph2vid.tsort.bounds import ideals_bound
from graph2vid.tsort.complexity import SortCount, count_sorts
from graph2vid.tsort.tsort_graph import TSortGraph, random_sorts

__all__ = ["SortCount", "TSortGraph", "count_sorts", "ideals_bound", "random_sorts"]
