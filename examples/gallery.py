"""Draw the gallery of the documentation: ``python examples/gallery.py`` writes its page (docs/background) and drawings.

Each procedure under examples/procedures is parsed, drawn, and compared with a flow graph made by hand
(expected.json). A remark belongs to the very graph it was written for: where a parser has changed its mind, the remark
is left out and the script says so, until somebody has looked at the drawing again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graph2vid._files import check_format, read_json, write_text
from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph
from graph2vid.text import Parse, Procedure, parse, read_procedure

ROOT = Path(__file__).parent.parent
PROCEDURES = Path(__file__).parent / "procedures"
PAGE = ROOT / "docs" / "background" / "gallery.md"
DRAWINGS = ROOT / "docs" / "assets" / "gallery"
DRAWN = ("rules", "learned")
COMPARED = (*DRAWN, "linear")


@dataclass(frozen=True)
class Remark:
    """What is right and what is wrong in a drawing, in words, and the faults (as the page lists them) it speaks of."""

    words: str
    missing: str
    extra: str


@dataclass(frozen=True)
class Exhibit:
    """A procedure of the gallery: its file, how it is written down, and a remark on what each parser makes of it."""

    file: str
    form: str
    remarks: dict[str, Remark]


EXHIBITS = (
    Exhibit(
        "pizza.txt",
        "plain text, a numbered list",
        {
            "rules": Remark(
                "Right: dough, sauce, cheese and oven are threads of their own, and each joins where it is needed; "
                "nothing is wrong.",
                missing="none",
                extra="none",
            ),
            "learned": Remark(
                "Right: dough, sauce and cheese are threads of their own that meet on the pizza. Wrong: the oven must "
                "be hot before the dough is stretched, rather than before the baking.",
                missing="none",
                extra="8 → 9",
            ),
        },
    ),
    Exhibit(
        "salad.md",
        "Markdown, with ingredients and a method",
        {
            "rules": Remark(
                "Right: dressing, potatoes, beans and lettuce are prepared apart and meet on the platter. Wrong: the "
                "iced water of the beans is taken for the water of the eggs, so that the beans wait for the eggs.",
                missing="none",
                extra="2 → 3",
            ),
            "learned": Remark(
                "Right: dressing and potatoes, and all that meets on the platter. Wrong: the shallot is chopped for "
                "the platter and not for the dressing, the beans wait for the eggs and the potatoes for the beans, "
                "and the eggs may be tucked in before there is anything to tuck them into.",
                missing="2 → 10, 4 → 5, 9 → 10",
                extra="2 → 3, 3 → 7",
            ),
        },
    ),
    Exhibit(
        "cake.json",
        "a schema.org Recipe in JSON-LD, in three sections",
        {
            "rules": Remark(
                "Right: cake and filling are threads of their own that meet when the filling is spread, and "
                "raspberries and cream are prepared in either order. Wrong: flour may go in before the eggs.",
                missing="3 → 4",
                extra="none",
            ),
            "learned": Remark(
                "Right: cake and filling are threads of their own that meet when the filling is spread, and tin and "
                "oven are needed for the batter only; nothing is wrong.",
                missing="none",
                extra="none",
            ),
        },
    ),
    Exhibit(
        "tyre.txt",
        "plain text, one paragraph",
        {
            "rules": Remark(
                "Right: from raising the car onwards, the one order that works. Wrong: the preparations are a chain, "
                "since each names the wheel, the brace or the jack again, although wedge, nuts and jack can be seen to "
                "in any order; and the parking is put before the raising only.",
                missing="1 → 2, 1 → 3",
                extra="2 → 3, 3 → 4, 4 → 5",
            ),
            "learned": Remark(
                "Right: the wheel is changed in order once its nuts are off. Wrong, and dangerously so: nothing ties "
                "the raising of the car to the jack and to the nuts loosened before, so that the preparations, a "
                "chain, are needed only when all is stowed away.",
                missing="3 → 6, 4 → 6, 5 → 6, 6 → 7",
                extra="2 → 3, 3 → 4, 4 → 5",
            ),
        },
    ),
    Exhibit(
        "chain.txt",
        "plain text, an instruction per line",
        {
            "rules": Remark(
                "Right: the sprockets are cleaned while the chain soaks, and the chain goes back when both are clean. "
                "Wrong: hanging up the bicycle stands alone, and the chain must be shifted before it is wiped.",
                missing="1 → 2, 1 → 3",
                extra="2 → 3",
            ),
            "learned": Remark(
                "Right: what is done to the chain, and that it goes back on clean sprockets. Wrong: the second thread "
                "begins with hanging up the bicycle instead of with the chain taken off, and both meet too early, "
                "when the sprockets are rinsed.",
                missing="1 → 3, 2 → 4, 4 → 6",
                extra="5 → 7, 7 → 8",
            ),
        },
    ),
    Exhibit(
        "shelf.html",
        "a web page that carries a schema.org HowTo, in three sections",
        {
            "rules": Remark(
                "Right: wall and board are threads, each in its order, that meet when the board is laid on the "
                "brackets. Wrong: the detector is needed before the drilling, not before the drawing.",
                missing="none",
                extra="1 → 2",
            ),
            "learned": Remark(
                "Right: no step comes too early. Wrong: it is the written order and no more; that the board can be "
                "sawn, sanded and oiled apart from the wall is not seen.",
                missing="none",
                extra="1 → 2, 6 → 7",
            ),
        },
    ),
)


@dataclass(frozen=True)
class Agreement:
    """How a flow graph agrees with the one expected.

    Attributes
    ----------
    f1 : float
        Of the precedences: the edges and all that they imply.
    missing, extra : list of (int, int)
        Expected edges that the graph does not imply, and edges of the graph that are not expected; steps from 0.
    """

    f1: float
    missing: list[tuple[int, int]]
    extra: list[tuple[int, int]]


def precedences(flow: FlowGraph) -> set[tuple[int, int]]:
    """Return all pairs of steps (from 0) of which the first must come before the second."""
    return set(flow.transitive_closure().edges)


def compare(found: FlowGraph, expected: FlowGraph) -> Agreement:
    """Compare two flow graphs over the same steps."""
    ours, theirs = precedences(found), precedences(expected)
    both = len(ours) + len(theirs)
    return Agreement(
        f1=2 * len(ours & theirs) / both if both else 1.0,
        missing=sorted(set(expected.transitive_reduction().edges) - ours),
        extra=sorted(set(found.transitive_reduction().edges) - theirs),
    )


def expected_flow(file: str, procedure: Procedure) -> FlowGraph:
    """Return the flow graph made by hand for a procedure of the gallery."""
    path = PROCEDURES / "expected.json"
    document = check_format(read_json(path), kind="graph2vid-gallery-expected", version=1, source=str(path))
    entry = document["procedures"][file]
    if entry["instructions"] != len(procedure):
        raise SystemExit(f"{file}: {len(procedure)} instructions were read, {entry['instructions']} are expected")
    return FlowGraph.from_edges(procedure.texts, [(a, b) for a, b in entry["edges"]], procedure.title)


def parsers_at_hand() -> list[str]:
    """Return the parsers of :data:`COMPARED` that work here; say which are left out."""
    procedure = read_procedure(PROCEDURES / EXHIBITS[0].file)
    found = []
    for parser in COMPARED:
        try:
            parse(procedure, parser)
            found.append(parser)
        except Graph2VidError as error:  # a package or the weights are not there
            print(f"left out: {parser} ({error})")
    return found


def page() -> tuple[str, dict[str, str]]:
    """Return the Markdown of the page, and its drawings by file name."""
    drawings: dict[str, str] = {}
    rows: list[tuple[Exhibit, Procedure, dict[str, Agreement]]] = []
    sections: list[str] = []
    parsers = parsers_at_hand()
    for exhibit in EXHIBITS:
        procedure = read_procedure(PROCEDURES / exhibit.file)
        expected = expected_flow(exhibit.file, procedure)
        found = {parser: parse(procedure, parser) for parser in parsers}
        agreements = {parser: compare(result.flow, expected) for parser, result in found.items()}
        rows.append((exhibit, procedure, agreements))
        sections += section(exhibit, procedure, found, agreements, drawings)
    return "\n".join([*INTRODUCTION, *table(parsers, rows), *sections]), drawings


INTRODUCTION = (
    "# Gallery",
    "",
    "Six procedures in different written forms, and the flow graphs that the parsers make of them. Every drawing is",
    "what `graph2vid parse` gives, untouched; each is compared with a graph that was made by hand from the text. F1 is",
    "over precedences: all pairs of steps of which one must come before the other, implied ones too. `linear` is the",
    "written order as it stands. *Missing* are expected edges that the graph does not imply, *extra* its edges that",
    "were not expected. Six procedures prove little, and some of the rules were mended after a look at these very",
    "drawings; the results on hundreds of recipes are in [Results](results.md#parsers).",
    "",
)


def table(parsers: list[str], rows: list[tuple[Exhibit, Procedure, dict[str, Agreement]]]) -> Iterator[str]:
    """Yield the table of precedence F1 by procedure and parser."""
    yield "| procedure | written as | steps | " + " | ".join(f"{parser} F1" for parser in parsers) + " |"
    yield "| :--- | :--- | ---: |" + " ---: |" * len(parsers)
    for exhibit, procedure, agreements in rows:
        scores = " | ".join(f"{agreements[parser].f1:.2f}" for parser in parsers)
        yield f"| [{procedure.title}](#{anchor(procedure)}) | {exhibit.form} | {len(procedure)} | {scores} |"
    means = [sum(agreements[parser].f1 for _, _, agreements in rows) / len(rows) for parser in parsers]
    yield "| mean | | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |"
    yield ""


def section(
    exhibit: Exhibit,
    procedure: Procedure,
    found: dict[str, Parse],
    agreements: dict[str, Agreement],
    drawings: dict[str, str],
) -> Iterator[str]:
    """Yield the part of the page about one procedure, and add its drawings."""
    stem = Path(exhibit.file).stem
    yield f"## {procedure.title}"
    yield ""
    yield f"`examples/procedures/{exhibit.file}`: {exhibit.form}."
    yield ""
    for parser in DRAWN:
        if parser not in found:
            continue
        name = f"{stem}-{parser}.svg"
        drawings[name] = found[parser].flow.to_svg()
        agreement = agreements[parser]
        yield f"### {procedure.title}: {parser}"
        yield ""
        yield f"![{procedure.title}, by {parser}](../assets/gallery/{name})"
        yield ""
        missing, extra = listed(agreement.missing), listed(agreement.extra)
        remark = exhibit.remarks.get(parser)
        if remark is not None and (remark.missing, remark.extra) == (missing, extra):
            yield remark.words
            yield ""
        else:
            print(f"{exhibit.file} by {parser}: no remark on this graph (missing: {missing}; extra: {extra})")
        yield f"*Precedence F1 {agreement.f1:.2f}. Missing: {missing}. Extra: {extra}.*"
        yield ""


def anchor(procedure: Procedure) -> str:
    """Return the anchor that a heading with the title of a procedure has, built and on code hosts."""
    return re.sub(r"[^a-z0-9]+", "-", procedure.title.lower())


def listed(edges: list[tuple[int, int]]) -> str:
    """Return edges in words, steps counted from 1 as in the drawings."""
    return ", ".join(f"{before + 1} → {after + 1}" for before, after in edges) or "none"


def main() -> None:
    """Write the page and its drawings."""
    text, drawings = page()
    DRAWINGS.mkdir(exist_ok=True)
    for name, drawing in drawings.items():
        write_text(DRAWINGS / name, drawing)
    write_text(PAGE, text.rstrip("\n") + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)} and {len(drawings)} drawings")


if __name__ == "__main__":
    main()
