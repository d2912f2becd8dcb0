"""From procedure text to a flow graph: reading, parsers (rules, learned, linear, bag), coarsening."""

from __future__ import annotations

from graph2vid.text.parsed_text import (
    PARSERS,
    Entity,
    EntityEdge,
    EntityGraph,
    Instruction,
    Parse,
    Parser,
    Procedure,
    Reason,
)
from graph2vid.text.parsers import chosen_parser, is_flow_file, parse, read_flow
from graph2vid.text.reading import procedure_from_bytes, procedure_from_text, read_procedure

__all__ = [
    "PARSERS",
    "Entity",
    "EntityEdge",
    "EntityGraph",
    "Instruction",
    "Parse",
    "Parser",
    "Procedure",
    "Reason",
    "chosen_parser",
    "is_flow_file",
    "parse",
    "procedure_from_bytes",
    "procedure_from_text",
    "read_flow",
    "read_procedure",
]
