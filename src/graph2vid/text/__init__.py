"""From procedure text to a flow graph: reading, parsers (rules, learned, linear, bag), coarsening."""

from __future__ import annotations

from graph2vid.text.model import (
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
]
