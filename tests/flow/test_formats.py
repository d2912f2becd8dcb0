"""Every format: round trips, files, and the messages about bad input."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid.errors import FormatError, Graph2VidError, GraphError
from graph2vid.flow import FlowGraph, Step

AWKWARD = st.text(max_size=12) | st.text(alphabet=' "#:,->→\\\n\r\tabNT{}<>\x00\u2028\u00a0', max_size=8)

SALAD = """\
title: Greek salad   # a comment

tomato:   cut the tomato
cucumber: cut the cucumber with a #2 knife
mix:      mix: everything -> in a bowl  # well
serve:

tomato, cucumber -> mix → serve   #done
"""


@st.composite
def awkward_flows(draw: st.DrawFn) -> FlowGraph:
    """Draw a flow graph with ids, texts and a title of any characters."""
    flow = draw(dags(max_steps=6))
    ids = st.lists(AWKWARD.filter(bool), min_size=len(flow), max_size=len(flow), unique=True)
    steps = [Step(step_id, draw(AWKWARD)) for step_id in draw(ids)]
    return FlowGraph.from_edges(steps, flow.edges, draw(AWKWARD))


@given(awkward_flows())
def test_round_trips(flow: FlowGraph) -> None:
    assert FlowGraph.from_text(flow.to_text()) == flow
    assert FlowGraph.from_dot(flow.to_dot()) == flow
    assert FlowGraph.from_json(json.loads(json.dumps(flow.to_json()))) == flow
    assert FlowGraph.from_networkx(flow.to_networkx()) == flow


@pytest.mark.parametrize("suffix", [".json", ".flow", ".txt", ".dot", ".gv", ".JSON"])
@settings(max_examples=15)
@given(flow=awkward_flows())
def test_files(tmp_path_factory: pytest.TempPathFactory, suffix: str, flow: FlowGraph) -> None:
    folder = tmp_path_factory.mktemp("flow")
    path = folder / f"a{suffix}"
    flow.save(path)
    assert FlowGraph.load(path) == flow
    assert FlowGraph.load(str(path)) == flow
    assert os.listdir(folder) == [path.name]  # noqa: PTH208


# -- the text notation --


def test_notation_as_written_by_hand() -> None:
    flow = FlowGraph.from_text(SALAD)
    assert flow.title == "Greek salad"
    assert flow.steps == (
        Step("tomato", "cut the tomato"),
        Step("cucumber", "cut the cucumber with a #2 knife"),
        Step("mix", "mix: everything -> in a bowl"),
        Step("serve", "serve"),
    )
    assert flow.edges == ((0, 2), (1, 2), (2, 3))
    assert FlowGraph.from_text(SALAD.replace("\n", "\r\n")) == flow
    assert FlowGraph.from_text("a, b -> c, d\n" + "\n".join(f"{x}: {x}" for x in "abcd")).edges == (
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
    )


def test_notation_is_written_for_people() -> None:
    written = FlowGraph.from_text(SALAD).to_text()
    assert written == (
        "title: Greek salad\n\n"
        "tomato:   cut the tomato\n"
        "cucumber: cut the cucumber with a #2 knife\n"
        "mix:      mix: everything -> in a bowl\n"
        "serve:\n\n"
        "tomato, cucumber -> mix -> serve\n"
    )


def test_notation_quotes() -> None:
    flow = FlowGraph.from_text('"title": a\n"a, b": "say \\"hi\\"\\n"  # x\nc: ""\n"a, b" -> c')
    assert flow.steps == (Step("title", "a"), Step("a, b", 'say "hi"\n'), Step("c", ""))
    assert flow.edges == ((1, 2),)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", GraphError, "x.flow: the flow graph has no steps"),
        ("title: only", GraphError, "x.flow: the flow graph has no steps"),
        (
            "a: A\n\nCut the tomato",
            FormatError,
            "x.flow, line 3: expected 'name: text' or 'name -> name', found 'Cut",
        ),
        ("a: A\nb: B\na: C", GraphError, "x.flow, line 3: step 'a' is declared twice (first on line 1)"),
        ("mix: x\nmxi -> mix", GraphError, "x.flow, line 2: unknown step 'mxi'; did you mean 'mix'?"),
        ("a: x\na -> zzz", GraphError, "x.flow, line 2: unknown step 'zzz'"),
        ("a: x\na -> a", GraphError, "x.flow, line 2: step 'a' cannot come before itself (self loop)"),
        ("a: x\nb: y\na -> b -> a", GraphError, "x.flow: the steps form a cycle: 'a' → 'b' → 'a'"),
        ("a: x\na ->", FormatError, "x.flow, line 2: a name is missing at the end"),
        ("a: x\n-> a", FormatError, "x.flow, line 2: expected the name of a step before '-> a'"),
        ("a: x\na,, a", FormatError, "x.flow, line 2: expected the name of a step before ', a'"),
        ("a: x\na -> b: y", FormatError, "x.flow, line 2: a ':' after an order"),
        (": x", FormatError, "x.flow, line 1: expected the name of a step before ': x'"),
        ('"a: x', FormatError, "x.flow, line 1: a quote is not closed"),
        ('"": x', GraphError, "x.flow, line 1: the id of a step must not be empty"),
        ('"a" b -> c', FormatError, "x.flow, line 1: expected ',' or '->' before 'b -> c'"),
        (
            'a: "x" y',
            FormatError,
            "x.flow, line 1: 'y' after the closing quote; put the whole text in quotes",
        ),
        ('a: "\\x"', FormatError, "x.flow, line 1: '\"\\\\x\"' has an unknown escape"),
        ('a: "\\ud800"', GraphError, "x.flow, line 1: the text of a step is not valid Unicode"),
        ("title: a\ntitle: b", FormatError, "x.flow, line 2: a second title"),
    ],
)
def test_bad_notation(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        FlowGraph.from_text(text, source="x.flow")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60) | st.text(alphabet='ab:,->#" \n\\{}[];=<>/*digraph', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (FlowGraph.from_text, FlowGraph.from_dot):
        for whole in (text, f"digraph {{{text}}}"):
            try:
                read(whole)
            except Graph2VidError as error:
                assert "\n" not in str(error)


# -- JSON --


def document(**changes: object) -> dict[str, object]:
    flow = FlowGraph.from_edges([("a", "A"), ("b", "B")], [(0, 1)], title="t")
    return flow.to_json() | changes


def test_json_form() -> None:
    assert document() == {
        "format": "graph2vid-flow",
        "version": 1,
        "title": "t",
        "steps": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}],
        "edges": [["a", "b"]],
    }
    lenient = document(extra=1, steps=[{"id": "a", "colour": 3}, {"id": "b", "text": ""}])
    del lenient["title"]
    assert FlowGraph.from_json(lenient).steps == (Step("a", "a"), Step("b", ""))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "f.json is not a graph2vid-flow file (its format is 'list')"),
        ({"format": "graph2vid-grounding"}, "f.json is not a graph2vid-flow file"),
        (document(version=3), "f.json has graph2vid-flow version 3; this graph2vid reads up to 2"),
        (document(version="1"), "f.json: the format version must be a positive whole number, not '1'"),
        (document(title=3), "f.json: title must be a string, not 3"),
        ({"format": "graph2vid-flow", "version": 1, "edges": []}, "f.json: steps is missing"),
        ({"format": "graph2vid-flow", "version": 1, "steps": []}, "f.json: edges is missing"),
        (document(steps={}), "f.json: steps must be a list, not {}"),
        (document(steps=[], edges=[]), "f.json: the flow graph has no steps"),
        (document(steps=[{"id": "a"}, "b"]), "f.json: steps[1] must be an object, not 'b'"),
        (document(steps=[{"text": "a"}]), "f.json: steps[0].id is missing"),
        (document(steps=[{"id": 7}]), "f.json: steps[0].id must be a string, not 7"),
        (document(steps=[{"id": "a", "text": None}]), "f.json: steps[0].text must be a string, not None"),
        (document(steps=[{"id": ""}]), "f.json: steps[0]: the id of a step must not be empty"),
        (document(steps=[{"id": "a"}, {"id": "a"}], edges=[]), "f.json: two steps have the id 'a'"),
        (document(edges="ab"), "f.json: edges must be a list, not 'ab'"),
        (document(edges=[["a", "b"], "ab"]), "f.json: edges[1] must be a list, not 'ab'"),
        (document(edges=[["a"]]), "f.json: edges[0] must hold two step ids, and perhaps a confidence, not 1 things"),
        (document(edges=[["a", 1]]), "f.json: edges[0][1] must be a string, not 1"),
        (document(edges=[["a", "c"]]), "f.json: edges[0][1]: unknown step 'c'"),
        (document(edges=[["a", "a"]]), "f.json: step 'a' cannot come before itself (self loop)"),
        (document(edges=[["a", "b"], ["b", "a"]]), "f.json: the steps form a cycle: 'a' → 'b' → 'a'"),
    ],
)
def test_bad_json(value: object, message: str) -> None:
    with pytest.raises((FormatError, GraphError)) as caught:
        FlowGraph.from_json(value, source="f.json")
    assert str(caught.value).startswith(message)


# -- DOT --


def test_dot_as_others_write_it() -> None:
    flow = FlowGraph.from_dot(
        """
        /* made
           elsewhere */
        strict Digraph "G" {
            graph [label="Two\\nlines"]; node [shape=box]
            rankdir = LR // left to right
        # a line of the preprocessor
            a [shape=oval, label="cut " + "it" color=red]; b:port:n -> c [label="edge label"];
            a -> b -> "d\\"e" ; 7 -> -1.5
            subgraph cluster_x { label = "not the title"; f; g [label=<<b>bold</b> &amp; plain>] }
            {a b} -> subgraph { h i };
            a [color=blue]
        }
        """
    )
    assert flow.title == "Two\nlines"
    assert dict(zip(flow.ids, flow.texts, strict=True)) == {
        **{name: name for name in ("b", "c", 'd"e', "7", "-1.5", "f", "h", "i")},
        "a": "cut it",
        "g": "bold  & plain",
    }
    edges = {(flow.ids[a], flow.ids[b]) for a, b in flow.edges}
    assert edges == {
        ("b", "c"),
        ("a", "b"),
        ("b", 'd"e'),
        ("7", "-1.5"),
        *((x, y) for x in "ab" for y in "hi"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.dot, line 1: not a DOT file: expected 'digraph', found the end of the file"),
        ("\n<?xml?>", "x.dot, line 2: not a DOT file: expected 'digraph', found "),
        ("graph { a -- b }", "x.dot, line 1: an undirected graph; a flow graph needs 'digraph'"),
        ("digraph {\na -- b }", "x.dot, line 2: an undirected edge '--'; a flow graph needs '->'"),
        ("digraph { }", "x.dot: the flow graph has no steps"),
        ("digraph { a -> b", "x.dot, line 1: the closing '}' is missing"),
        ("digraph a b", "x.dot, line 1: expected '{', found 'b'"),
        ("digraph { a -> }", "x.dot, line 1: expected a node, found '}'"),
        ("digraph { a -> a }", "x.dot: step 'a' cannot come before itself"),
        ("digraph { a -> b -> a }", "x.dot: the steps form a cycle: 'a' → 'b' → 'a'"),
        ('digraph {\n\n"a }', "x.dot, line 3: a quote is not closed: '\"a }'"),
        ("digraph { a [label=<b }", "x.dot, line 1: an HTML string '<' is not closed"),
        ("digraph { a [label] }", "x.dot, line 1: expected '=', found ']'"),
        ("digraph { a [label=] }", "x.dot, line 1: expected the value of 'label', found ']'"),
        ("digraph { a [=] }", "x.dot, line 1: expected the name of an attribute, found '='"),
        ('digraph { "a" + b }', "x.dot, line 1: expected a quoted string after '+', found 'b'"),
        ("digraph { a } digraph { b }", "x.dot, line 1: one graph was expected, but 'digraph' follows it"),
        ("digraph { a $ }", "x.dot, line 1: a character that DOT does not have: '$ }'"),
        ("digraph " + "{" * 60, "x.dot, line 1: subgraphs nested too deeply"),
    ],
)
def test_bad_dot(text: str, message: str) -> None:
    with pytest.raises((FormatError, GraphError)) as caught:
        FlowGraph.from_dot(text, source="x.dot")
    assert str(caught.value).startswith(message)


_NAMES = [f"n{number}" for number in range(4000)]


@pytest.mark.parametrize(
    ("suffix", "text", "edges"),
    [
        (".dot", f"digraph {{ {{ {' '.join(_NAMES[:2000])} }} -> {{ {' '.join(_NAMES[2000:])} }} }}", "4,000,000"),
        (".dot", "digraph {" + "{ a b } -> { c d }\n" * 50_001 + "}", "200,004"),
        (".flow", f"a:\nb:\n{', '.join(['a'] * 2000)} -> {', '.join(['b'] * 2000)}", "4,000,000"),
        (".flow", "a:\nb:\nc:\nd:\n" + "a, b -> c, d\n" * 50_001, "200,004"),
    ],
)
def test_too_many_edges_are_refused_unbuilt(suffix: str, text: str, edges: str) -> None:
    read = {".dot": FlowGraph.from_dot, ".flow": FlowGraph.from_text}[suffix]
    tracemalloc.start()
    with pytest.raises(FormatError, match=rf"^x, line \d+: {edges} edges; up to 200,000 are read"):
        read(text, source="x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150 << 20


@pytest.mark.parametrize("name", ["x.dot", "x.flow"])
def test_too_many_steps_are_refused(name: str) -> None:
    names = [f"n{number}" for number in range(20_001)]
    text = f"digraph {{ {' '.join(names)} }}" if name == "x.dot" else ":\n".join([*names, ""])
    read = FlowGraph.from_dot if name == "x.dot" else FlowGraph.from_text
    with pytest.raises(FormatError, match=r"20,001 steps; up to 20,000 are read \(\.json has no limit\)"):
        read(text, source=name)


# -- networkx --


def test_networkx_as_others_make_it() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_node(1, label="one")
    graph.add_edges_from([(1, 2), (1, 2)])
    flow = FlowGraph.from_networkx(graph)
    assert flow.steps == (Step("1", "one"), Step("2", "2"))
    assert flow.edges == ((0, 1),)


def test_bad_networkx() -> None:
    with pytest.raises(GraphError, match="not a networkx graph: 3"):
        FlowGraph.from_networkx(3)
    with pytest.raises(GraphError, match="undirected; a flow graph needs a DiGraph"):
        FlowGraph.from_networkx(networkx.Graph([(1, 2)]))
    with pytest.raises(GraphError, match="no steps"):
        FlowGraph.from_networkx(networkx.DiGraph())
    with pytest.raises(GraphError, match="two steps have the id '1'"):
        FlowGraph.from_networkx(networkx.DiGraph([(1, "1")]))
    with pytest.raises(GraphError, match="form a cycle"):
        FlowGraph.from_networkx(networkx.DiGraph([(1, 2), (2, 1)]))


# -- files --


def test_bad_files(tmp_path: Path) -> None:
    flow = FlowGraph.bag(["a"])
    for act in (FlowGraph.load, flow.save):
        with pytest.raises(FormatError, match=r"a.yaml: the suffix '.yaml' names no flow graph format; use .json"):
            act(tmp_path / "a.yaml")
        with pytest.raises(FormatError, match="the suffix '' names no"):
            act(tmp_path / "a")
    with pytest.raises(Graph2VidError, match=r"cannot read .*a.json: No such file"):
        FlowGraph.load(tmp_path / "a.json")
    (tmp_path / "b.flow").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(FormatError, match=r"b.flow is not a UTF-8 text file \(byte 0\)"):
        FlowGraph.load(tmp_path / "b.flow")
    (tmp_path / "c.json").write_text('{"format":\n')
    with pytest.raises(FormatError, match=r"c.json, line 2, column 1: not JSON"):
        FlowGraph.load(tmp_path / "c.json")
    (tmp_path / "d.flow").mkdir()
    with pytest.raises(Graph2VidError, match=r"cannot read .*d.flow: Is a directory"):
        FlowGraph.load(tmp_path / "d.flow")


def test_nothing_partial_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = FlowGraph.bag(["a"])
    with pytest.raises(Graph2VidError, match=r"cannot write .*a.json: No such file or directory"):
        flow.save(tmp_path / "nowhere" / "a.json")
    path = tmp_path / "a.json"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(Graph2VidError, match="No space left on device"):
        flow.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "before"


def test_no_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:  # not by chmod: root may write anywhere
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(Graph2VidError, match=r"cannot write .*a.flow: Permission denied"):
        FlowGraph.bag(["a"]).save(tmp_path / "a.flow")


def test_more_predecessors_than_a_line_holds() -> None:
    flow = FlowGraph.from_edges([f"step {number}" for number in range(301)], [(a, 300) for a in range(300)])
    assert FlowGraph.from_text(flow.to_text()) == flow
