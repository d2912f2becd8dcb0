"""``python -m benchmarks parser``: parsers of procedures, and the learned one without the compiled kernels."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.cases import choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.report import Report, duration, table, times
from benchmarks.timing import Effort
from graph2vid.datasets import read_recipes
from graph2vid.evaluate.parser import recipe_texts
from graph2vid.text import Instruction, Procedure, parse, read_procedure
from graph2vid.text.learned import RecipeModel, integer_layers, learned_parser

PARSERS = ("auto", "learned", "rules")
EXAMPLES = Path(__file__).parent.parent / "examples" / "procedures"


def procedures() -> list[Procedure]:
    """Return recipes of the flow graph corpus (dev) if GRAPH2VID_DATA names the folder that holds it, else examples."""
    corpus = Path(os.environ.get("GRAPH2VID_DATA", ".")) / "recipe_flowgraph"
    if corpus.is_dir():
        texts = recipe_texts(read_recipes(corpus, "dev"))
        return [Procedure(tuple(map(Instruction, text.texts)), text.title) for text in texts]
    return [
        read_procedure(EXAMPLES / name) for name in ("cake.json", "pizza.txt", "salad.md", "shelf.html", "tyre.txt")
    ]


def bench_parser(
    only: Sequence[str] | None = None,
    effort: Effort | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure :func:`graph2vid.text.parse` in seconds of the processor; parameters and result as for `bench_align`."""
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    given = procedures()
    found = []
    for parser in choose({name: name for name in PARSERS}, only):
        if progress is not None:
            progress(parser)
        found.append(measure_parser(parser, given, (effort or Effort()).rounds))
    words = sum(len(text.split()) for procedure in given for text in procedure.texts)
    steps = sum(map(len, given))
    rows = [
        (
            row["parser"],
            duration(row["seconds"]),
            f"{1 / row['seconds']:.0f}",
            duration(row["numpy_seconds"]),
            times(row["ratio"]),
        )
        for row in found
    ]
    shown = table(
        "Parsers",
        f"{len(given)} procedures of {words / len(given):.0f} words in {steps / len(given):.0f} instructions on "
        "average, one after the other; time of the processor over all threads. Without kernels: the network of the "
        f"learned parser on NumPy. The network runs on {integer_layers.encoder_level()}.",
        ("parser", "a procedure", "per second", "without kernels", "ratio"),
        rows,
    )
    return Report("parser", tuple(only or ()), before, tuple(found), (shown,), time.perf_counter() - begin)


def measure_parser(parser: str, given: Sequence[Procedure], rounds: int) -> dict[str, Any]:
    """Measure one parser, in turns with the same without kernels where it reads with the network."""

    def seconds() -> float:
        start = time.process_time()
        for procedure in given:
            parse(procedure, parser)
        return (time.process_time() - start) / len(given)

    native, plain = [], []
    network = without_kernels() if parser != "rules" else None
    parse(given[0], parser)
    for _ in range(rounds):
        native.append(seconds())
        if network is not None:
            with patch.object(RecipeModel, "load", lambda weights=None: network):
                plain.append(seconds())
    best, numpy_best = min(native), min(plain, default=None)
    ratio = None if numpy_best is None else numpy_best / best
    return {"parser": parser, "seconds": best, "numpy_seconds": numpy_best, "ratio": ratio}


def without_kernels() -> RecipeModel:
    """Load the learned parser as it is where the kernels are not built."""
    with patch.object(integer_layers, "native", lambda: None):
        status = learned_parser.SHIPPED.stat()
        found: RecipeModel = learned_parser._load.__wrapped__(
            learned_parser.SHIPPED, status.st_mtime_ns, status.st_size
        )
    return found
