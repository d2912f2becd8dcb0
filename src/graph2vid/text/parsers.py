"""The parsers by name. Other packages add theirs by an entry point in the group ``graph2vid.parsers``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from graph2vid.text.coarsen import coarsen
from graph2vid.text.model import PARSERS, Parse, Procedure, Reason


def parse(procedure: Procedure, parser: str = "rules", **options: Any) -> Parse:
    """Find the flow graph of a procedure.

    Parameters
    ----------
    procedure : Procedure
        From :func:`graph2vid.text.read_procedure`, say.
    parser : str
        ``rules``, ``learned``, ``linear``, ``bag``, or one that another package offers.
    **options
        Options of that parser.

    Returns
    -------
    Parse
    """
    return PARSERS.get(parser)(procedure, **options)


@PARSERS.register("rules")
def _rules(procedure: Procedure, **options: Any) -> Parse:
    from graph2vid.text.rules import parse_by_rules

    return parse_by_rules(procedure, **options)


@PARSERS.register("learned")
def _learned(procedure: Procedure, **options: Any) -> Parse:
    from graph2vid.text.learned import parse_by_model

    return parse_by_model(procedure, **options)


@PARSERS.register("linear")
def _linear(procedure: Procedure) -> Parse:
    """Each instruction waits for the one before it."""
    return coarsen(procedure, (Reason(a, b, "listed order") for a, b in pairwise(range(len(procedure)))), "linear")


@PARSERS.register("bag")
def _bag(procedure: Procedure) -> Parse:
    """No instruction waits for another."""
    return coarsen(procedure, (), "bag")
