"""``graph2vid parse``."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from graph2vid.text import Parse, Reason

_MOST_DROPPED = 10  # dropped edges that are printed; --json has all


def parse(
    procedure: Annotated[
        str,
        typer.Argument(
            metavar="PROCEDURE",
            help="The procedure: text, Markdown, a web page, JSON-LD or recipe-scrapers' JSON; - reads standard input.",
        ),
    ],
    parser: Annotated[
        str,
        typer.Option(
            help="Who finds the order: auto (learned and the written order together), rules, learned, linear, "
            "bag, or another."
        ),
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the flow graph: .json, .flow, .txt, .dot or .gv."),
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the graph as SVG.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the graph as PNG.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each step waits for others.")] = False,
    entities: Annotated[
        bool, typer.Option("--entities", help="Show and draw the actions, foods and tools rather than the steps.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="rules: a spaCy model, by name or path; learned: a folder with weights."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all that was found (JSON).")
    ] = None,
) -> None:
    """Find the flow graph of a procedure in words: what must come before what."""
    from rich.console import Console

    from graph2vid.cli.outputs import is_stdout, save_json
    from graph2vid.errors import InputError
    from graph2vid.flow import flow_drawing as flow_pictures
    from graph2vid.flow import known_suffix
    from graph2vid.text import entity_drawing as entity_pictures
    from graph2vid.text import parse_to_json

    if output is not None and not is_stdout(output):
        known_suffix(output)
    for path, suffix in ((svg, ".svg"), (png, ".png")):
        if path is not None and path.suffix.lower() != suffix:
            raise InputError(f"{path}: the file after --{suffix[1:]} must end in {suffix}")
    if parser == "rules":
        from graph2vid.text.rules import spare_imports

        spare_imports()
    found = _parsed(procedure, parser, model)
    if entities and found.entities is None:
        raise InputError(f"the parser {parser!r} makes no graph of entities; try --parser learned")
    if output is not None:
        found.flow.save(output)
    save_json(json, parse_to_json(found))
    for path in filter(None, (svg, png)):
        if entities and found.entities is not None:
            entity_pictures.save(found.entities, path, found.procedure.title)
        else:
            flow_pictures.save(found.flow, path)
    console = Console(highlight=False)
    _show(console, found, entities, explain)
    for path in filter(None, (output, json, svg, png)):
        if not is_stdout(path):
            console.print(f"wrote {path}", markup=False, soft_wrap=True)


def _parsed(source: str, parser: str, model: str | None) -> Parse:
    from graph2vid.errors import InputError
    from graph2vid.text import MOST_BYTES, PARSERS, procedure_from_bytes, read_procedure

    if source == "-":
        procedure = procedure_from_bytes(sys.stdin.buffer.read(MOST_BYTES + 1), source="standard input")
    else:
        procedure = read_procedure(source)
    options: dict[str, Any] = {} if model is None else {"weights" if parser == "learned" else "model": model}
    chosen = PARSERS.get(parser)
    try:
        inspect.signature(chosen).bind(procedure, **options)
    except TypeError:
        advice = "; name the one it is for: --parser rules or learned" if parser == "auto" else ""
        raise InputError(f"the parser {parser!r} takes no --model{advice}") from None
    return chosen(procedure, **options)


def _show(console: Console, found: Parse, entities: bool, explain: bool) -> None:
    from graph2vid.cli.flow_command import print_flow
    from graph2vid.flow import counted, plain
    from graph2vid.tsort import count_sorts

    if entities:
        _show_entities(console, found)
    else:
        print_flow(console, found.flow, count_sorts(found.flow))
    if found.procedure.ingredients:
        console.print(f"\n{counted(len(found.procedure.ingredients), 'ingredient')} kept apart", style="dim")
    if explain:
        _show_reasons(console, found)
    if found.backward:
        number = counted(len(found.backward), "link")
        console.print(f"\ndropped {number} that pointed backwards in the text:", markup=False)
        for reason in found.backward[:_MOST_DROPPED]:
            why = f"{reason.rule} ({reason.words})" if reason.words else reason.rule
            console.print(f"  {_edge(reason)}: {plain(why)}", markup=False)
        if len(found.backward) > _MOST_DROPPED:
            console.print(f"  … and {len(found.backward) - _MOST_DROPPED} more")


def _edge(reason: Reason) -> str:
    return f"{reason.before + 1} → {reason.after + 1}"


def _show_reasons(console: Console, found: Parse) -> None:
    """Print the edges with their reasons; edges that others imply come with a remark."""
    from graph2vid.cli.terminal_table import show_table
    from graph2vid.flow import plain

    implied = {True: "", False: "implied by other edges"}
    rows = [
        [_edge(one), plain(one.rule), plain(one.words), implied[(one.before, one.after) in found.flow.edges]]
        for one in sorted(found.reasons, key=lambda reason: (reason.after, reason.before))
    ]
    console.print()
    if rows:
        show_table(console, ["edge", "rule", "words", ""], rows, words=4)
    else:
        console.print("no step waits for another")


def _show_entities(console: Console, found: Parse) -> None:
    """Print each entity with the edges that lead from it."""
    from graph2vid.cli.terminal_table import show_table
    from graph2vid.flow import counted, plain
    from graph2vid.text.entity_drawing import name_of

    assert found.entities is not None
    every, edges = found.entities.entities, found.entities.edges
    leading = defaultdict(list)
    for edge in edges:
        leading[edge.source].append(f"{edge.label} → {name_of(every[edge.target])} {plain(every[edge.target].text)}")
    if found.procedure.title:
        console.print(found.procedure.title, style="bold", markup=False)
    steps = counted(len(found.procedure), "step")
    console.print(f"{steps}, {len(every)} entities, {counted(len(edges), 'edge')}\n")
    rows = [[name_of(one), plain(one.text), one.tag, "; ".join(leading[at])] for at, one in enumerate(every)]
    if rows:
        show_table(console, ["place", "words", "tag", "edges"], rows, words=4)
