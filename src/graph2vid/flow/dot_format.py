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
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, NoReturn

from graph2vid._values import read_number, unescaped
from graph2vid.errors import FormatError, GraphError, InputError
from graph2vid.flow.choices import check_confidence
from graph2vid.flow.flow_graph import FlowGraph
from graph2vid.flow.messages import quoted
from graph2vid.flow.steps import Step

_DEEPEST = 50  # subgraphs within subgraphs


def to_dot(flow: FlowGraph) -> str:
    """Write a digraph."""
    lines = ["digraph {"]
    if flow.title:
        lines.append(f"  label={_written(flow.title)}; labelloc=t;")
    lines.append('  node [shape=box, style=rounded, fontname="sans-serif"];')
    branch_of = {
        step: f"{group}.{number}"
        for group, branches in enumerate(flow.alternatives, start=1)
        for number, branch in enumerate(branches, start=1)
        for step in branch
    }
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


def from_dot(text: str, source: str) -> FlowGraph:
    """Read a digraph; messages name ``source`` and the line."""
    return _Reader(text, source).read()


class _Token(NamedTuple):
    kind: str  # "word" (a bare name or number), "quoted", "html", "sign", "end"
    text: str
    line: int

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else quoted(self.text)

    def is_sign(self, signs: str) -> bool:
        return self.kind == "sign" and self.text in signs.split()

    def is_keyword(self, words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words.split()

    @property
    def is_id(self) -> bool:
        return self.kind in ("word", "quoted", "html")


_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<quoted>"(?:[^"\\]|\\.)*")
    |(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[^\W0-9]\w*)
    |(?P<html><)
    |(?P<sign>->|--|[{}\[\]=;,:+])""",
    re.VERBOSE | re.DOTALL,
)
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
        self.optional: dict[str, bool] = {}
        self.branches: dict[str, list[str]] = {}

    def read(self) -> FlowGraph:
        if self._next().is_keyword("strict"):
            self._take()
        kind = self._take()
        if kind.is_keyword("graph"):
            self._fail(kind, "an undirected graph; a flow graph needs 'digraph'")
        if not kind.is_keyword("digraph"):
            self._fail(kind, f"not a DOT file: expected 'digraph', found {kind}")
        self._body(depth=0)
        if (rest := self._next()).kind != "end":
            self._fail(rest, f"one graph was expected, but {rest} follows it")
        try:
            steps = [Step(name, name if text is None else text) for name, text in self.texts.items()]
            groups: dict[str, list[list[str]]] = {}
            for branch, names in self.branches.items():
                groups.setdefault(branch.partition(".")[0], []).append(names)
            optional = [name for name, is_optional in self.optional.items() if is_optional]
            return FlowGraph.from_edges(steps, self.edges, self.title, optional=optional, alternatives=groups.values())
        except GraphError as error:
            raise GraphError(f"{self.source}: {error}") from None

    # -- the grammar ---------------------------------------------------------------------------------------

    def _body(self, depth: int) -> list[str]:
        """Read the name, if there is one, and the statements of a graph in braces; return the nodes named in them."""
        if self._next().is_id:
            self._take()
        if not (brace := self._take()).is_sign("{"):
            self._fail(brace, f"expected '{{', found {brace}")
        names: dict[str, None] = {}
        while not (token := self._next()).is_sign("}"):
            if token.kind == "end":
                self._fail(token, "the closing '}' is missing")
            if token.is_sign("; ,"):
                self._take()
            elif token.is_keyword("graph node edge"):
                self._take()
                attributes = self._attributes()
                if token.is_keyword("graph") and depth == 0:
                    self.title = attributes.get("label", self.title)
            elif token.is_id and self._next(1).is_sign("="):
                key, value = self._assignment()
                if key == "label" and depth == 0:
                    self.title = value
            else:
                names |= dict.fromkeys(self._nodes_or_edges(depth))
        self._take()
        return list(names)

    def _nodes_or_edges(self, depth: int) -> list[str]:
        groups = [self._end(depth)]
        while (arrow := self._next()).is_sign("-> --"):
            if self._take().text == "--":
                self._fail(arrow, "an undirected edge '--'; a flow graph needs '->'")
            groups.append(self._end(depth))
        attributes = self._attributes()
        if len(groups) == 1:
            for name in groups[0]:
                if "label" in attributes:
                    self.texts[name] = attributes["label"]
                if "optional" in attributes:
                    self.optional[name] = attributes["optional"].lower() in ("true", "yes", "1")
                if "alternative" in attributes:
                    self.branches.setdefault(attributes["alternative"], []).append(name)
        given = attributes.get("confidence", "1")
        try:
            sure = check_confidence(read_number(given, "confidence"), "confidence")
        except InputError:
            self._fail(self._next(), f"a confidence is a number above 0 and at most 1, not {quoted(given)}")
        for before, after in pairwise(groups):
            self.edges += [(a, b, sure) for a in before for b in after]
        return [name for group in groups for name in group]

    def _end(self, depth: int) -> list[str]:
        """Read a node, or a subgraph, as one end of an edge or alone."""
        token = self._next()
        if token.is_keyword("subgraph") or token.is_sign("{"):
            if depth >= _DEEPEST:
                self._fail(token, "subgraphs nested too deeply")
            self.position += token.kind == "word"
            return self._body(depth + 1)
        name = self._value("a node")
        self.texts.setdefault(name, None)
        while self._next().is_sign(":"):  # a port, which says nothing about the order
            self.position += 2
        return [name]

    def _attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._next().is_sign("["):
            self._take()
            while not self._next().is_sign("]"):
                if self._next().is_sign(", ;"):
                    self._take()
                else:
                    attributes.update([self._assignment()])
            self._take()
        return attributes

    def _assignment(self) -> tuple[str, str]:
        key = self._value("the name of an attribute")
        if not (sign := self._take()).is_sign("="):
            self._fail(sign, f"expected '=', found {sign}")
        return key, self._value(f"the value of {quoted(key)}")

    def _value(self, what: str) -> str:
        """Read a name or string and return what it stands for; quoted strings may be joined by '+'."""
        token = self._take()
        if not token.is_id:
            self._fail(token, f"expected {what}, found {token}")
        if token.kind == "html":
            return unescaped(_TAG.sub(" ", token.text)).strip()
        if token.kind == "word":
            return token.text
        text = _unescaped(token.text)
        while self._next().is_sign("+"):
            self._take()
            if (more := self._take()).kind != "quoted":
                self._fail(more, f"expected a quoted string after '+', found {more}")
            text += _unescaped(more.text)
        return text

    # -- tokens --------------------------------------------------------------------------------------------

    def _next(self, ahead: int = 0) -> _Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def _take(self) -> _Token:
        token = self._next()
        self.position += 1
        return token

    def _fail(self, token: _Token, message: str) -> NoReturn:
        raise FormatError(f"{self.source}, line {token.line}: {message}")

    def _tokens(self, text: str) -> Iterator[_Token]:
        position, line = 0, 1
        while position < len(text):
            found = _TOKEN.match(text, position)
            end = _Token("end", "", line)
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
                yield _Token(kind, piece[1:-1] if kind in ("quoted", "html") else piece, line)
            position += len(piece)
            line += piece.count("\n")
        yield _Token("end", "", line)


def _unescaped(text: str) -> str:
    # What Graphviz gives a meaning of its own (\N, \G, …) is left as it is.
    return _ESCAPE.sub(lambda found: _LINE_ESCAPES.get(found.group(1), found.group()), text)
