"""Every regular expression that meets a user's text takes linear time on its own worst case, as every reader does.

The test finds the expressions by walking through the modules, and how each is applied by looking into their source.
It makes texts of what each expression speaks of (its characters, one or two of them again and again, behind what begins
it) and compares the processor's time at two sizes: sixteen times the text takes sixteen times as long, or little more,
but not 256 times.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from types import ModuleType

import pytest

import graph2vid
from graph2vid.errors import Graph2VidError
from graph2vid.evidence.captions import parse_captions, parse_timed_text
from graph2vid.flow.dot_format import from_dot
from graph2vid.flow.text_format import from_text, is_text_notation
from graph2vid.grounding.times import parse_time
from graph2vid.text import procedure_from_text
from graph2vid.text.coarsen import is_optional
from graph2vid.text.reading.sentences import sentence_spans
from graph2vid.text.reading.structured import read_web_page
from graph2vid.text.rules.carrier import pieces as pieces_of_text

WALKED = ("_files", "_values", "text", "flow", "evidence", "grounding", "datasets", "export", "studio", "report")
"""Packages and modules that read what users hand in."""
WAYS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
LARGE, TIMES = 4_000, 16
SECONDS = 0.03
"""What takes no longer than this at the large size is not looked at further: no expression of quadratic time does."""
BOUNDED = {
    "graph2vid.text.reading.boilerplate": 200,
    "graph2vid.text.reading.lines._PART": 100,
    "graph2vid.text.reading.sentences._WORD_BEFORE": 24,
}
"""Expressions whose texts the code around them bounds: module or name, and how many characters there are at most."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(graph2vid.__path__, "graph2vid."):
        if found.name.split(".")[1] in WALKED:
            try:
                yield import_module(found.name)
            except ModuleNotFoundError as error:  # an extra that is not installed
                assert not str(error.name).startswith("graph2vid"), error


def expressions() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Yield the name of each expression, the expression, and a way in which it is applied."""
    for module in modules():
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            patterns = value.values() if isinstance(value, dict) else [value]
            for pattern in patterns:
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    ways = {way for way in WAYS if re.search(rf"\b{name}\b[\w\[\]()., ]*\.{way}\(", source)}
                    for way in sorted(ways or {"match", "fullmatch", "search"}):
                        yield f"{module.__name__}.{name}", pattern, way


EXPRESSIONS = {
    f"{name} {way} {number}": (name, pattern, way) for number, (name, pattern, way) in enumerate(expressions())
}


def pieces(pattern: re.Pattern[str]) -> list[str]:
    """Return characters that the expression speaks of, and some of every kind."""
    literal = re.sub(r"\\[dDwWsSbBAZ]|\(\?P?<?\w*>?|[|*+?{}()\[\]^$]", " ", pattern.pattern)
    found = dict.fromkeys([*' a1.<-:A"', *(sign for sign in literal if not sign.isspace())])
    return [sign for sign in found if not sign.isalnum()][:14] + [sign for sign in found if sign.isalnum()][:5]


def texts(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Yield texts of one or two pieces repeated, behind nothing or behind what may begin a match."""
    signs = pieces(pattern)
    words = re.findall(r"[a-z]{3,}", pattern.pattern)[:6]
    for one, other in product(signs, signs):
        text = one * (size // 2) + other * (size // 2) if one != other else one * size
        yield text
        if one != other:
            yield (one + other) * (size // 2)
    for word, one in product([*words, "1.", "<", '"', "(", "[", "# "], signs):
        yield word + one * size
        yield (word + one) * (size // (len(word) + 1))


def applied(pattern: re.Pattern[str], way: str) -> Callable[[str], object]:
    if way == "sub":
        return lambda text: pattern.sub("", text)
    if way == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    return getattr(pattern, way)  # type: ignore[no-any-return]


def seconds(call: Callable[[], object], times: int = 1) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def assert_linear(read: Callable[[str], object], small: str, large: str, what: str) -> None:
    """Compare two sizes, several times over where it seems to be too slow: a busy machine is no defect."""
    if seconds(lambda: read(large)) < SECONDS:
        return
    for _ in range(3):
        growth = seconds(lambda: read(large), 3) / max(seconds(lambda: read(small), 3), 1e-6)
        if growth < 5 * len(large) / len(small):
            return
    raise AssertionError(f"{what} takes {growth:.0f} times as long for {len(large) / len(small):.0f} times the text")


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_expressions(case: str) -> None:
    name, pattern, way = EXPRESSIONS[case]
    bound = BOUNDED.get(name, BOUNDED.get(name.rpartition(".")[0], LARGE))
    read = applied(pattern, way)
    large = min(LARGE, bound)
    for small_text, large_text in zip(texts(pattern, large // TIMES), texts(pattern, large), strict=True):
        assert_linear(read, small_text, large_text, case)


def test_expressions_have_names() -> None:
    """An expression that is written where it is used would be missed above."""
    unnamed = []
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in WAYS
            ):
                unnamed.append(f"{module.__name__}, line {node.lineno}")
    assert unnamed == []


READ = {
    "procedure": lambda text: _ignoring(procedure_from_text, text),
    "json-ld": lambda text: _ignoring(procedure_from_text, json.dumps({"@type": "Recipe", "recipeInstructions": text})),
    "sentences": sentence_spans,
    "pieces for the parser": lambda text: pieces_of_text(0, text),
    "optional": is_optional,
    "captions": lambda text: _ignoring(parse_captions, f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n"),
    "many captions": lambda text: _ignoring(parse_captions, "\n\n".join(text.split())),
    "transcript": lambda text: _ignoring(parse_timed_text, f"0:01 {text}\n{text}"),
    "notation": lambda text: _ignoring(from_text, text, "x"),
    "notation?": is_text_notation,
    "dot": lambda text: _ignoring(from_dot, f"digraph {{ {text} }}", "x"),
    "web page": lambda text: _ignoring(read_web_page, text, "x"),
    "a time": lambda text: _ignoring(parse_time, text),
}
UNITS = [
    *(
        ". ",
        "..",
        "... ",
        "! ",
        "?!",
        "…. ",
        "1. ",
        "2.) ",
        "(a ",
        "[b",
        "( ",
        "[(",
        ")(",
        "; ",
        " ;  ",
        ", if\u2003",
        " -\t",
    ),
    *("\n", "\n\n", "1.\n", "-\n", "a:\n", "# ", "**a ", "__ ", "<b", "</", "<!--", "<script>", "&#1", "& ", '"', "\\"),
    *("->", "a->b,", "a-.1", "|", "{", "{a ", "0:01\n", "00:01.000-->", "<00:01.000>", "e.g. ", "no. ", "Mix. "),
    *("Mix.\n\nMix\n\n", "Part 1\n", "Print\n", " ", "a", "a ", "(optional) ", "if desired "),
]


def _ignoring(read: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(Graph2VidError):
        read(*arguments)


@pytest.mark.parametrize("reader", READ)
def test_readers(reader: str) -> None:
    for unit in UNITS:
        texts = [unit * (size // len(unit)) for size in (1_000, 1_000 * TIMES)]
        assert_linear(READ[reader], *texts, what=f"{reader} of {unit!r}")


def test_thirty_thousand_dots() -> None:
    assert sentence_spans("." * 30_000 + "a") == [(0, 30_001)]
