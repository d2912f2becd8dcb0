"""From procedure text to a flow graph: reading, parsers (rules, learned, linear, bag, auto), coarsening.

Other packages enter here; the module ``entity_drawing`` is loaded by who draws.
"""

from __future__ import annotations

from graph2vid.text.coarsen import coarsen
from graph2vid.text.parse_json import from_json as parse_from_json
from graph2vid.text.parse_json import to_json as parse_to_json
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
from graph2vid.text.reading.script import Script, read_script, script_from_text
from graph2vid.text.reading.tidy import MOST_BYTES, decoded
from graph2vid.text.step_titles import LONGEST, short_titles

# Procedures as they are read.
__all__ = ["MOST_BYTES", "Instruction", "Procedure", "decoded", "procedure_from_bytes", "procedure_from_text"]
__all__ += ["read_procedure"]
# Parsers and what they find.
__all__ += ["PARSERS", "Entity", "EntityEdge", "EntityGraph", "Parse", "Parser", "Reason", "chosen_parser", "coarsen"]
__all__ += ["is_flow_file", "parse", "parse_from_json", "parse_to_json", "read_flow"]
# Scripts: what is to be said.
__all__ += ["Script", "read_script", "script_from_text"]
# Titles of instructions.
__all__ += ["LONGEST", "short_titles"]
