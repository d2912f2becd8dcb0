r"""Graphviz DOT: written plainly, and read as far as digraphs of steps need it.

Nodes become steps in the order in which they first appear, the attribute ``label`` is the text (the id where
there is none) and the ``label`` of the graph is the title. Subgraphs are read as the nodes in them, also as
ends of an edge (``{a b} -> c``). A node may be ``optional=true``, an edge may have a ``confidence``, and nodes with
``alternative="g.b"`` form branch b of group g, of which one branch is done. All other attributes, ports and default
attributes are ignored.

A backslash in a name or text is written twice, a line break as ``\n``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, NoReturn

from graph2vid._values import read_number, unescaped
from graph2vid.errors import FormatError, GraphError, InputError
from graph2vid.flow.choices import check_confidence
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted, too_many
from graph2vid.flow.steps import Step

_DEEPEST = 50  # subgraphs within subgraphs


def to_dot(flow: FlowGraph) -> str:
    """Write a digraph."""
    lines = ["digraph {", *([f"  label={_written(flow.title)}; labelloc=t;"] if flow.title else [])]
    lines.append('  node [shape=box, style=rounded, fontname="sans-serif"];')
    branch_of: dict[int, str] = {}
    for group, branches in enumerate(flow.alternatives, start=1):
        for number, branch in enumerate(branches, start=1):
            branch_of |= dict.fromkeys(branch, f"{group}.{number}")
    for index, step in enumerate(flow.steps):
        more = ', optional=true, style="rounded,dashed"' if index in flow.optional else ""
        more += f', alternative="{branch_of[index]}"' if index in branch_of else ""
        lines.append(f"  {_written(step.id)} [label={_written(step.text)}{more}];")
    for (a, b), sure in flow.confidence.items():
        more = f' [confidence="{sure!r}", label="{sure:.2g}", style=dashed]' if sure < 1.0 else ""
        lines.append(f"  {_written(flow.ids[a])} -> {_written(flow.ids[b])}{more};")
    return "\n".join([*lines, "}"]) + "\n"


def _written(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class _Token(NamedTuple):
    kind: str  # "word" (a bare name or number), "quoted", "html", "sign", "end"
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else quoted(self.text)

    def is_one_of(self, signs: str) -> bool:
        """Tell whether it is one of these signs or keywords."""
        return self.kind in ("sign", "word") and self.text.lower() in signs.split()


_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<quoted>"(?:[^"\\]|\\.)*")
    |(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[^\W0-9]\w*)
    |(?P<html><)
    |(?P<sign>->|--|[{}\[\]=;,:+])""",
    re.VERBOSE | re.DOTALL,
)
_IDS = ("word", "quoted", "html")
_TAG = re.compile(r"<[^<>]*>")
_BRACKET = re.compile(r"[<>]")
_ESCAPE = re.compile(r"\\(\r\n|.)", re.DOTALL)
_LINE_ESCAPES = {"n": "\n", "l": "\n", "r": "\n", "\n": "", "\r\n": "", '"': '"', "\\": "\\"}


class _Reader:
    """A recursive-descent reader of the DOT grammar."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.tokens = list(self._tokens(text))
        self.position = 0
        self.title = ""
        self.texts: dict[str, str | None] = {}
        self.edges: list[tuple[str, str, float]] = []
        self.optional: dict[str, str] = {}
        self.branches: dict[str, list[str]] = defaultdict(list)

    def read(self) -> FlowGraph:
        self._accept("strict")
        kind = self._take()
        if kind.is_one_of("graph"):
            self._fail(kind, "an undirected graph; a flow graph needs 'digraph'")
        if not kind.is_one_of("digraph"):
            self._fail(kind, f"not a DOT file: expected 'digraph', found {kind}")
        self._body(depth=0)
        if (rest := self._next()).kind != "end":
            self._fail(rest, f"one graph was expected, but {rest} follows it")
        try:
            steps = [Step(name, name if text is None else text) for name, text in self.texts.items()]
            groups: dict[str, list[list[str]]] = defaultdict(list)
            for branch, names in self.branches.items():
                groups[branch.partition(".")[0]].append(names)
            optional = [name for name, said in self.optional.items() if said.lower() in ("true", "yes", "1")]
            return FlowGraph.from_edges(steps, self.edges, self.title, optional=optional, alternatives=groups.values())
        except GraphError as error:
            raise GraphError(f"{self.source}: {error}") from None

    # -- the grammar ---------------------------------------------------------------------------------------

    def _body(self, depth: int) -> list[str]:
        """Read the name, if there is one, and the statements of a graph in braces; return the nodes named in them."""
        self.position += self._next().kind in _IDS
        self._expect("{")
        names: dict[str, None] = {}
        while not self._accept("}"):
            token = self._next()
            if token.kind == "end":
                self._fail(token, "the closing '}' is missing")
            if self._accept("; ,"):
                continue
            given = {}
            if self._accept("graph node edge"):
                attributes = self._attributes()
                given = attributes if token.is_one_of("graph") else {}
            elif token.kind in _IDS and self._next(1).is_one_of("="):
                given = dict([self._assignment()])
            else:
                names |= dict.fromkeys(self._nodes_or_edges(depth))
            if depth == 0:
                self.title = given.get("label", self.title)
        return list(names)

    def _nodes_or_edges(self, depth: int) -> list[str]:
        groups = [self._end(depth)]
        while (arrow := self._next()) and self._accept("-> --"):
            if arrow.text == "--":
                self._fail(arrow, "an undirected edge '--'; a flow graph needs '->'")
            groups.append(self._end(depth))
        attributes = self._attributes()
        if len(groups) == 1:
            for name in groups[0]:
                self.texts[name] = attributes.get("label", self.texts[name])
                self.optional[name] = attributes.get("optional", self.optional.get(name, ""))
                if "alternative" in attributes:
                    self.branches[attributes["alternative"]].append(name)
        given = attributes.get("confidence", "1")
        try:
            sure = check_confidence(read_number(given, "confidence"), "confidence")
        except InputError:
            self._fail(self._next(), f"a confidence is a number above 0 and at most 1, not {quoted(given)}")
        for before, after in pairwise(groups):
            if objection := too_many(len(self.edges) + len(before) * len(after), "edges"):
                self._fail(arrow, objection)
            self.edges += [(a, b, sure) for a in before for b in after]
        return [name for group in groups for name in group]

    def _end(self, depth: int) -> list[str]:
        """Read a node, or a subgraph, as one end of an edge or alone."""
        token = self._next()
        if self._accept("subgraph") or token.is_one_of("{"):
            if depth >= _DEEPEST:
                self._fail(token, "subgraphs nested too deeply")
            return self._body(depth + 1)
        name = self._value("a node")
        self.texts.setdefault(name, None)
        if objection := too_many(len(self.texts), "steps"):
            self._fail(token, objection)
        while self._accept(":"):  # a port, which says nothing about the order
            self._take()
        return [name]

    def _attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._accept("["):
            while not self._accept("]"):
                if not self._accept(", ;"):
                    attributes.update([self._assignment()])
        return attributes

    def _assignment(self) -> tuple[str, str]:
        key = self._value("the name of an attribute")
        self._expect("=")
        return key, self._value(f"the value of {quoted(key)}")

    def _value(self, what: str) -> str:
        """Read a name or string and return what it stands for; quoted strings may be joined by '+'."""
        token = self._take()
        if token.kind not in _IDS:
            self._fail(token, f"expected {what}, found {token}")
        text = token.text
        while token.kind == "quoted" and self._accept("+"):
            if (more := self._take()).kind != "quoted":
                self._fail(more, f"expected a quoted string after '+', found {more}")
            text += more.text
        return text

    # -- tokens --------------------------------------------------------------------------------------------

    def _next(self, ahead: int = 0) -> _Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def _take(self) -> _Token:
        token = self._next()
        self.position += 1
        return token

    def _accept(self, signs: str) -> bool:
        """Take the next token if it is one of these signs or keywords; say whether it was."""
        found = self._next().is_one_of(signs)
        self.position += found
        return found

    def _expect(self, sign: str) -> None:
        if not (token := self._take()).is_one_of(sign):
            self._fail(token, f"expected '{sign}', found {token}")

    def _fail(self, token: _Token, message: str) -> NoReturn:
        raise FormatError(f"{self.source}, line {token.line}: {message}")

    def _tokens(self, text: str) -> Iterator[_Token]:
        position, end = 0, _Token("end", "", 1)
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                problem = "a quote is not closed" if text[position] == '"' else "a character that DOT does not have"
                self._fail(end, f"{problem}: {quoted(text[position : position + 30])}")
            kind, piece = str(found.lastgroup), found.group()
            if kind == "html":
                depth = 0
                for bracket in _BRACKET.finditer(text, position):
                    depth += 1 if bracket[0] == "<" else -1
                    if depth == 0:
                        piece = text[position : bracket.end()]
                        break
                else:
                    self._fail(end, "an HTML string '<' is not closed")
            if kind != "space":
                yield end._replace(kind=kind, text=_meant(kind, piece))
            position += len(piece)
            end = end._replace(line=end.line + piece.count("\n"))
        yield end


def _meant(kind: str, text: str) -> str:
    """Return what a token stands for; what Graphviz gives a meaning of its own (``\\N``, ``\\G``, …) stays as it is."""
    if kind == "html":
        return unescaped(_TAG.sub(" ", text[1:-1])).strip()
    if kind == "quoted":
        return _ESCAPE.sub(lambda found: _LINE_ESCAPES.get(found.group(1), found.group()), text[1:-1])
    return text


def from_dot(text: str, source: str) -> FlowGraph:
    """Read a digraph; messages name ``source`` and the line."""
    return _Reader(text, source).read()
