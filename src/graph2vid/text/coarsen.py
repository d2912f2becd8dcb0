"""From links between the parts of instructions to a flow graph with one step per instruction."""

from __future__ import annotations

from collections.abc import Iterable

from graph2vid.flow import FlowGraph
from graph2vid.text.alternatives import alternative_groups, share_links
from graph2vid.text.optional import is_optional
from graph2vid.text.parsed_text import EntityGraph, Parse, Procedure, Reason


def coarsen(procedure: Procedure, reasons: Iterable[Reason], parser: str, entities: EntityGraph | None = None) -> Parse:
    """Merge all nodes of an instruction, keep the connections, and make them a flow graph.

    Links within one instruction vanish. Links that point backwards in the text are dropped and reported, so that
    no cycle remains. The graph is transitively reduced. Instructions that say so are optional steps,
    or alternatives to the one before.

    Parameters
    ----------
    procedure : Procedure
    reasons : iterable of Reason
        The links, in any order and direction; equal ones count once.
    parser : str
        Which parser found them.
    entities : EntityGraph, optional
        The graph they come from.

    Returns
    -------
    Parse
    """
    groups = alternative_groups(procedure.texts)
    distinct = dict.fromkeys(share_links(reasons, groups) if groups else reasons)
    forward = tuple(reason for reason in distinct if reason.before < reason.after)
    backward = tuple(reason for reason in distinct if reason.before > reason.after)
    flow = FlowGraph.from_edges(
        procedure.texts,
        {(reason.before, reason.after) for reason in forward},
        procedure.title,
        optional=(number for number, text in enumerate(procedure.texts) if is_optional(text)),
        alternatives=groups,
    ).transitive_reduction()
    return Parse(procedure, flow, parser, forward, backward, entities)
