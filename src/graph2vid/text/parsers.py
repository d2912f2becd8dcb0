"""The parsers by name, and a flow graph from whatever file holds a procedure: a flow graph, or words.

Other packages add parsers by an entry point in the group ``graph2vid.parsers``.
"""

from __future__ import annotations

import os
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

from graph2vid._files import parse_json, read_bytes
from graph2vid.errors import FormatError
from graph2vid.flow import FLOW_FORMAT, FlowGraph, is_text_notation
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parsed_text import PARSERS, Parse, Procedure, Reason
from graph2vid.text.reading import FLOW_SUFFIXES, procedure_of, read_procedure
from graph2vid.text.reading.tidy import MOST_BYTES, decoded


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
        With the flow graph, the reasons for its edges, and the probability of each precedence.
    """
    return PARSERS.get(parser)(procedure_of(procedure), **options)


@PARSERS.register("auto")
def _auto(procedure: Procedure, *, fold: int | None = None) -> Parse:
    """The learned parser and the written order together: the probability of every precedence."""
    from graph2vid.text.precedence import parse_by_pairs

    return parse_by_pairs(procedure, fold=fold)


def chosen_parser(parser: str) -> str:
    """Return the name: every parser stands for itself now (deprecated)."""
    warnings.warn("chosen_parser() goes away in the next release: use the name", DeprecationWarning, stacklevel=2)
    return parser


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


def read_flow(path: str | os.PathLike[str], parser: str = "auto", **options: Any) -> FlowGraph:
    """Read a flow graph, or a procedure in words, whose flow graph is then found.

    Parameters
    ----------
    path : path
        ``.flow``, ``.dot``, ``.gv``, JSON of our own and the text notation in a ``.txt`` file are flow graphs;
        everything else is read by :func:`graph2vid.text.read_procedure`.
    parser : str
        Who finds the flow graph of a procedure in words.
    **options
        Options of that parser.
    """
    return FlowGraph.load(path) if is_flow_file(path) else parse(read_procedure(path), parser, **options).flow


def is_flow_file(path: str | os.PathLike[str]) -> bool:
    """Say whether a file holds a flow graph, not words, as :func:`read_flow` tells them apart."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".txt", ".json"):  # flow graphs or words
        return suffix in FLOW_SUFFIXES
    data = read_bytes(path, MOST_BYTES + 1)
    try:
        text = decoded(data, str(path))
        document = parse_json(text, str(path)) if suffix == ".json" else None
    except FormatError:  # whoever reads it next says what is wrong with it
        return False
    return (
        is_text_notation(text)
        if suffix == ".txt"
        else isinstance(document, dict) and document.get("format") == FLOW_FORMAT
    )
