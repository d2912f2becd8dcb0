"""The parsers by name. Other packages add theirs by an entry point in the group ``graph2vid.parsers``."""

from __future__ import annotations

import os
import warnings
from functools import cache
from itertools import pairwise
from typing import Any

from graph2vid.text.coarsen import coarsen
from graph2vid.text.parsed_text import PARSERS, Parse, Procedure, Reason
from graph2vid.text.reading import procedure_of


def parse(procedure: Procedure | str | os.PathLike[str], parser: str = "auto", **options: Any) -> Parse:
    """Find the flow graph of a procedure.

    Parameters
    ----------
    procedure : Procedure, str or path
        The procedure, its words ("Chop the onion. Fry it."), or the file that holds it
        (:func:`graph2vid.text.read_procedure`).
    parser : str
        ``auto``, ``rules``, ``learned``, ``linear``, ``bag``, or one that another package offers.
    **options
        Options of that parser.

    Returns
    -------
    Parse
        Its ``parser`` names the one that found the graph; of ``auto``, the one that was chosen.
    """
    return PARSERS.get(parser)(procedure_of(procedure), **options)


@PARSERS.register("auto")
def _auto(procedure: Procedure) -> Parse:
    """The rules where an English model is installed, else the learned parser, which needs none."""
    chosen = chosen_parser("auto")
    if chosen == "learned":
        _tell_fallback()
    return parse(procedure, chosen)


def chosen_parser(parser: str) -> str:
    """Return the parser that a name stands for: of ``auto`` the one that it chooses on this machine."""
    if parser != "auto":
        return parser
    from graph2vid.text.rules.dependency_parser import has_model

    return "rules" if has_model() else "learned"


@cache
def _tell_fallback() -> None:
    warnings.warn(
        "no English spaCy model is installed, so the learned parser finds the flow graph (see --parser)",
        stacklevel=5,
    )


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
