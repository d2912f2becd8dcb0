"""The text notation: a flow graph as a person writes it by hand.

    title: Greek salad

    # every step has a name and, after a colon, its text
    tomato:   cut the tomato
    cucumber: cut the cucumber
    mix:      mix everything in a bowl
    serve:                                # no text: the name is the text

    # arrows say what comes before what
    tomato, cucumber -> mix -> serve

    # what may be left out, what is done in one way or another, what most people, if not all, do first
    optional: serve
    alternatives: fry | boil, drain
    tomato -0.8-> cucumber

Rules
-----
- A line is a title, a step (``name: text``) or an order (``names -> names -> …``, names parted by commas; an
  arrow may also be ``→``). In an order, each name left of an arrow comes before each name right of it. Orders
  may stand before the steps they name.
- ``optional:`` and names parted by commas: steps that may be left out. ``alternatives:`` and two branches or more,
  parted by ``|``, each of one name or several parted by commas: exactly one of them is done.
- An arrow may tell how sure it is: ``-0.8->``, a number above 0 and below 1.
- A ``#`` that begins a line, or stands alone between spaces, begins a comment; in an order any ``#`` does.
- A name or text may be put in double quotes, with the escapes of JSON (``\\"``, ``\\\\``, ``\\n``). Needed
  for a name with ``"``, ``:``, ``,``, ``#`` or an arrow in it (among alternatives: ``|``), for a step called
  "title", "optional" or "alternatives", for an empty text, and for a text that begins with a quote, holds a line
  break or a ``#`` alone, or begins or ends with spaces.
"""

from __future__ import annotations

import json
import re
from itertools import chain, pairwise, product
from typing import NoReturn

from graph2vid._values import read_number
from graph2vid.errors import FormatError, Graph2VidError, GraphError, InputError
from graph2vid.flow.choices import check_confidence
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted, self_loop, too_many, unknown_step
from graph2vid.flow.steps import Step

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SURE = r"(?:0?\.[0-9]+|[0-9](?:\.[0-9]+)?(?=e-))(?:e-[0-9]+)?"
_BARE_NAME = re.compile(rf'(?:(?!->|-{_SURE}->)[^",:#→])+')
_BARE_NAME_IN_BRANCH = re.compile(r'[^",:#→|]+')
_NOTHING, _BAR = re.compile(r"(?!)"), re.compile(r"\|")
_ARROW = re.compile(rf"(?:-({_SURE}))?->|→")
_KEYWORDS = ("title", "optional", "alternatives")
_PARTED_BY = {"": (_ARROW, "',' or '->'"), "optional": (_NOTHING, "','"), "alternatives": (_BAR, "',' or '|'")}
_COMMENT_IN_TEXT = re.compile(r"(?:^|\s)#(?:\s|$)")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_LONGEST_LINE = 100
MARK = "# graph2vid flow graph"
"""The comment that begins a flow graph in a file whose suffix does not tell."""


class _Reader:
    """Reads one text line by line; keeps the line of everything, for the messages."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.title: str | None = None
        self.steps: list[Step] = []
        self.line_of: dict[str, int] = {}
        self.edges: list[tuple[str, str, float]] = []
        # By keyword ("" are the orders): the line, groups of names and the confidences between these.
        self.found: dict[str, list[tuple[int, list[list[str]], list[float]]]] = {sort: [] for sort in _PARTED_BY}

    def read(self, text: str) -> FlowGraph:
        for number, line in enumerate(_LINE_BREAK.split(text), start=1):
            self.number, self.line, self.position = number, line, 0
            self._statement()
        if objection := too_many(len(self.steps), "steps"):
            self._fail(objection)
        for sort, statements in self.found.items():
            for self.number, groups, confidences in statements:
                self._check_known(groups)
                if not sort:
                    self._enter_edges(groups, confidences)
        optional = [name for _, groups, _ in self.found["optional"] for name in groups[0]]
        alternatives = [groups for _, groups, _ in self.found["alternatives"]]
        try:
            return FlowGraph.from_edges(
                self.steps, self.edges, self.title or "", optional=optional, alternatives=alternatives
            )
        except GraphError as error:
            raise GraphError(f"{self.source}: {error}") from None

    def _statement(self) -> None:
        if self._at_end():
            return
        name_is_quoted = self._peek() == '"'
        name = self._name()
        if self._peek() == ":":
            self.position += 1
            keyword = "" if name_is_quoted else name.casefold()
            if keyword in ("optional", "alternatives"):
                self._names(keyword, self._name(_BARE_NAME_IN_BRANCH))
            else:
                self._declaration(name, keyword == "title")
        else:
            self._names("", name)

    def _names(self, sort: str, first: str) -> None:
        """Read names parted by commas, in groups parted by the signs of this sort, to the end of the line."""
        sign, signs = _PARTED_BY[sort]
        bare = _BARE_NAME_IN_BRANCH if sort else _BARE_NAME
        groups, confidences = [[first]], []
        while not self._at_end():
            if self._peek() == ",":
                self.position += 1
                groups[-1].append(self._name(bare))
            elif found := sign.match(self.line, self.position):
                self.position = found.end()
                confidences.append(self._confidence(found[1] if found.lastindex else None))
                groups.append([self._name(bare)])
            elif not sort and self._peek() == ":":
                self._fail("a ':' after an order; a step and its text stand on a line of their own")
            else:
                self._fail(f"expected {signs} before {quoted(self.line[self.position :])}")
        if not sort and len(groups) == 1:
            self._fail(f"expected 'name: text' or 'name -> name', found {quoted(self.line.strip())}")
        self.found[sort].append((self.number, groups, confidences))

    def _confidence(self, text: str | None) -> float:
        try:
            return 1.0 if text is None else check_confidence(read_number(text, "the arrow"), "the arrow")
        except InputError as error:
            self._fail(str(error), GraphError)

    def _declaration(self, name: str, is_title: bool) -> None:
        text = self._text()
        if is_title:
            if self.title is not None:
                self._fail("a second title")
            self.title = text or ""
            return
        if name in self.line_of:
            first = self.line_of[name]
            self._fail(f"step {quoted(name)} is declared twice (first on line {first})", GraphError)
        self.line_of[name] = self.number
        try:
            self.steps.append(Step(name, name if text is None else text))
        except GraphError as error:
            self._fail(str(error), GraphError)

    def _check_known(self, groups: list[list[str]]) -> None:
        for name in chain.from_iterable(groups):
            if name not in self.line_of:
                self._fail(unknown_step(name, self.line_of), GraphError)

    def _enter_edges(self, groups: list[list[str]], confidences: list[float]) -> None:
        for (before, after), sure in zip(pairwise(groups), confidences, strict=True):
            if objection := too_many(len(self.edges) + len(before) * len(after), "edges"):
                self._fail(objection)
            for a, b in product(before, after):
                if a == b:
                    self._fail(self_loop(a), GraphError)
                self.edges.append((a, b, sure))

    # -- parts of a line -----------------------------------------------------------------------------------

    def _peek(self) -> str:
        """Return the next character that is not a space ("" at the end) and move to it."""
        while self.position < len(self.line) and self.line[self.position].isspace():
            self.position += 1
        return self.line[self.position : self.position + 1]

    def _at_end(self) -> bool:
        return self._peek() in ("", "#")

    def _name(self, bare: re.Pattern[str] = _BARE_NAME) -> str:
        if self._peek() == '"':
            return self._quoted()
        found = bare.match(self.line, self.position)
        if found is None:
            rest = self.line[self.position :].strip()
            self._fail(f"expected the name of a step before {quoted(rest)}" if rest else "a name is missing at the end")
        self.position = found.end()
        return found.group().strip()

    def _text(self) -> str | None:
        """Return the text to the end of the line; None when there is none."""
        if self._peek() == '"':
            text = self._quoted()
            if not self._at_end():
                rest = quoted(self.line[self.position :])
                self._fail(f'{rest} after the closing quote; put the whole text in quotes, inner ones as \\"')
            return text
        rest = self.line[self.position :]
        comment = _COMMENT_IN_TEXT.search(rest)
        return (rest[: comment.start()] if comment else rest).strip() or None

    def _quoted(self) -> str:
        found = _QUOTED.match(self.line, self.position)
        if found is None:
            self._fail("a quote is not closed")
        self.position = found.end()
        try:
            return str(json.loads(found.group(), strict=False))
        except json.JSONDecodeError as error:
            self._fail(f"{quoted(found.group())} has an unknown escape ({error.msg.lower()})")

    def _fail(self, message: str, kind: type[Graph2VidError] = FormatError) -> NoReturn:
        raise kind(f"{self.source}, line {self.number}: {message}")


def from_text(text: str, source: str) -> FlowGraph:
    """Read the text notation; messages name ``source`` and the line."""
    return _Reader(source).read(text)


def is_text_notation(text: str) -> bool:
    """Say whether a text of unknown kind is a flow graph in this notation, rather than a procedure in words.

    It begins as :func:`to_marked_text` writes it, or has a step on every line that is not an order, and at least one
    of each.
    """
    lines = list(filter(None, map(str.strip, _LINE_BREAK.split(text))))
    if lines[:1] == [MARK]:
        return True
    lines = [line for line in lines if not line.startswith("#")]
    orders = [line for line in lines if (arrow := _ARROW.search(line)) and ":" not in line[: arrow.start()]]
    steps = [line for line in lines if ":" in line]
    return bool(orders and steps) and len(orders) + len(steps) == len(lines)


def to_marked_text(flow: FlowGraph) -> str:
    """Write the text notation so that it is known as such under any name, ``.txt`` for one."""
    return f"{MARK}\n\n{to_text(flow)}"


def to_text(flow: FlowGraph) -> str:
    """Write the text notation."""
    lines = [f"title: {_written_text(flow.title)}", ""] if flow.title else []
    names = [_written_name(step.id) for step in flow.steps]
    widest = min(max(map(len, names)), 24)
    for name, step in zip(names, flow.steps, strict=True):
        text = "" if step.text == step.id else _written_text(step.text)
        lines.append(f"{name + ':':<{widest + 1}} {text}".rstrip())
    if flow.edges:
        lines += ["", *_written_orders(flow.sure, names)]
        soft = ((edge, sure) for edge, sure in flow.confidence.items() if sure < 1.0)
        lines += [f"{names[a]} -{sure!r}-> {names[b]}" for (a, b), sure in soft]
    lines += [""] if flow.optional or flow.alternatives else []
    if flow.optional:
        lines.append(f"optional: {', '.join(names[step] for step in flow.optional)}")
    for group in flow.alternatives:
        branches = (", ".join(names[step] for step in branch) for branch in group)
        lines.append(f"alternatives: {' | '.join(branches)}")
    return "\n".join(lines) + "\n"


def _written_orders(flow: FlowGraph, names: list[str]) -> list[str]:
    """Return lines that hold every edge once; steps with the same predecessors share one."""
    targets: dict[tuple[int, ...], list[int]] = {}
    for step in flow.topological_order:
        if flow.predecessors[step]:
            targets.setdefault(flow.predecessors[step], []).append(step)
    lines = []
    while targets:
        group = next(iter(targets))
        line = ", ".join(names[step] for step in group)
        length = 0  # however long the first names are, one arrow follows them
        while group in targets and length < _LONGEST_LINE:
            group = tuple(sorted(targets.pop(group)))
            line += " -> " + ", ".join(names[step] for step in group)
            length = len(line)
        lines.append(line)
    return lines


def _written_name(name: str) -> str:
    is_word = _BARE_NAME.fullmatch(name) and _BARE_NAME_IN_BRANCH.fullmatch(name) and name.casefold() not in _KEYWORDS
    return name if is_word and name.isprintable() and name == name.strip() else json.dumps(name, ensure_ascii=False)


def _written_text(text: str) -> str:
    bare = text and text.isprintable() and text == text.strip() and not text.startswith('"')
    return text if bare and not _COMMENT_IN_TEXT.search(text) else json.dumps(text, ensure_ascii=False)
