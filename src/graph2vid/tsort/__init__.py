"""tSort graphs: every legal order of a procedure packed into one graph, its sizes, and exact counts.

Other packages enter here; the module ``speedup_plot`` is loaded by who draws.
"""

from __future__ import annotations

from graph2vid.tsort.automaton import AUTOMATON_LIMIT, Automaton
from graph2vid.tsort.bounds import ideals_bound, readable
from graph2vid.tsort.complexity import Complexity, SortCount, count_sorts, even_threads, sections
from graph2vid.tsort.lattice import Masks, flags_of, sums_over, words_of
from graph2vid.tsort.order_costs import PairCosts, Restrictions, made_certain, order_costs
from graph2vid.tsort.tsort_graph import TSortGraph, random_sorts

__all__ = [
    "AUTOMATON_LIMIT",
    "Automaton",
    "Complexity",
    "Masks",
    "PairCosts",
    "Restrictions",
    "SortCount",
    "TSortGraph",
]
__all__ += [
    "count_sorts",
    "even_threads",
    "flags_of",
    "ideals_bound",
    "made_certain",
    "order_costs",
    "random_sorts",
    "readable",
    "sections",
]
__all__ += ["sums_over", "words_of"]
