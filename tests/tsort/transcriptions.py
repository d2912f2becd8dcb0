"""Both constructions of the tSort graph as the paper writes them, slow and literal, to check the fast one.

Corrections, the same for both: a unique root and a unique sink are added first. The first construction starts
from P = {root}, leaves out descendants that are in P already, takes as descendants the direct successors in
the augmented graph, and lets each (v, P) enter the queue once. The second finds its edges from the sink
backwards: they are reversed.
"""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import Any

import networkx as nx

from graph2vid.flow import FlowGraph

ROOT, SINK = "ROOT", "SINK"
Node = tuple[Any, frozenset[Any]]


def with_root_and_sink(flow: FlowGraph) -> nx.DiGraph:
    """Return G with a root before all sources and a sink after all sinks."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(flow)))
    graph.add_edges_from(flow.edges)
    sources = [v for v in range(len(flow)) if graph.in_degree(v) == 0]
    sinks = [v for v in range(len(flow)) if graph.out_degree(v) == 0]
    graph.add_edges_from((ROOT, v) for v in sources)
    graph.add_edges_from((v, SINK) for v in sinks)
    return graph


def augmented(graph: nx.DiGraph) -> nx.DiGraph:
    """Connect the nodes on parallel threads in both directions."""
    g_aug = graph.copy()
    for a, b in combinations(graph, 2):
        if not nx.has_path(graph, a, b) and not nx.has_path(graph, b, a):
            g_aug.add_edges_from([(a, b), (b, a)])
    return g_aug


def forward_with_visited_sets(graph: nx.DiGraph) -> nx.DiGraph:
    """Transcribe the algorithm of the main text; nodes are (v, P)."""
    g_aug = augmented(graph)
    e_tsort = []
    start = (ROOT, frozenset({ROOT}))
    q = deque([start])
    entered = {start}
    while q:
        v, p = q.popleft()
        for v_d in g_aug.successors(v):
            if v_d in p:
                continue
            p_d = p | {v_d}
            if set(graph.predecessors(v_d)) <= p:
                if (v_d, p_d) not in entered:
                    entered.add((v_d, p_d))
                    q.append((v_d, p_d))
                e_tsort.append(((v, p), (v_d, p_d)))
    return nx.DiGraph(e_tsort)


def backward_with_fronts(graph: nx.DiGraph) -> nx.DiGraph:
    """Transcribe the algorithm of the appendix; nodes are (v, F)."""
    lowest_common_ancestor: dict[tuple[Any, Any], Any] = {}
    for (a, b), ancestor in nx.all_pairs_lowest_common_ancestor(graph):
        lowest_common_ancestor[a, b] = lowest_common_ancestor[b, a] = ancestor
    e_tsort = []
    start: Node = (SINK, frozenset())
    q = deque([start])
    entered = {start}
    while q:
        v, f = q.popleft()
        p_v = frozenset(graph.predecessors(v))
        for v_new in p_v | f:
            f_new = (p_v | f) - {v_new}
            is_feasible = True
            for v_f in f_new:
                if lowest_common_ancestor[v_new, v_f] == v_new:
                    is_feasible = False
            if is_feasible:
                if (v_new, f_new) not in entered:
                    entered.add((v_new, f_new))
                    q.append((v_new, f_new))
                e_tsort.append(((v, f), (v_new, f_new)))
    return nx.DiGraph(e_tsort).reverse()


def visited_to_front(graph: nx.DiGraph, node: Node) -> Node:
    """Apply the isomorphism (v, P) ↦ (v, {u ∈ P∖v with a child outside P})."""
    v, p = node
    return v, frozenset(u for u in p - {v} if not set(graph.successors(u)) <= p)
