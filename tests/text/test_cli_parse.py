"""``graph2vid parse``."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph2vid.cli import main
from graph2vid.errors import Graph2VidError, GraphError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.text import PARSERS, Entity, EntityEdge, EntityGraph, Parse, Procedure, Reason, parse, read_flow
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parse_json import from_json

RECIPE = "Bread\n\nIngredients:\n- flour\n\nMethod:\n1. Mix [it].\n2. Heat the oven.\n3. Bake the dough.\n"


def toy(procedure: Procedure, *, model: str | None = None) -> Parse:
    """Link everything to the last instruction, and that back to the first."""
    last = len(procedure) - 1
    reasons = [Reason(i, last, "same noun", f"[dough] {model or ''}") for i in range(last)]
    entities = (
        Entity(0, 0, 3, 0, "Mix", "Ac"),
        Entity(last, 9, 14, 2, "dough\x1b", "F"),
        Entity(last, 0, 4, 0, "Bake", "Ac"),
    )
    graph = EntityGraph(entities, (EntityEdge(0, 1, "f-eq"), EntityEdge(1, 2, "t")))
    return coarsen(procedure, [*reasons, Reason(0, 1, "t"), Reason(last, 0, "backwards", "it")], "toy", graph)


@pytest.fixture(autouse=True)
def toy_parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(PARSERS._parts, "toy", toy)
    monkeypatch.setenv("COLUMNS", "100")
    yield


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bread.txt"
    path.write_text(RECIPE)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["parse", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def error(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["parse", *map(str, arguments)]) == 2
    written = capfd.readouterr().err
    assert written.count("\n") == 1
    return written


def test_drawing_in_the_terminal(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, recipe, "--parser", "linear")
    assert output.startswith("Bread\n3 steps, 2 edges, 1 thread; begins with 1; ends with 3\none legal order\n")
    assert "Mix [it]." in output
    assert "1 ingredient kept apart" in output
    assert "6 legal orders" in run(capsys, recipe, "--parser", "bag")


def test_flow_files(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bread.json", "bread.flow", "bread.dot"):
        output = run(capsys, recipe, "--parser", "toy", "-o", name)
        assert output.endswith(f"wrote {name}\n")
        flow = FlowGraph.load(name)
        assert flow.edges == ((0, 1), (1, 2))
        assert flow.texts == ("Mix [it].", "Heat the oven.", "Bake the dough.")


def test_reasons_and_dropped_links(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, recipe, "--parser", "toy", "--explain", "--model", "m")
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert "1 → 2 t" in rows
    assert "1 → 3 same noun [dough] m implied by other edges" in rows
    assert "2 → 3 same noun [dough] m" in rows
    assert rows[-2:] == ["dropped 1 link that pointed backwards in the text:", "3 → 1: backwards (it)"]
    assert "no step waits for another" in run(capsys, recipe, "--parser", "bag", "--explain")


def test_entities(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run(capsys, recipe, "--parser", "toy", "--entities", "--svg", "e.svg")
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert rows[:2] == ["Bread", "3 steps, 3 entities, 2 edges"]
    assert rows[4:7] == ["1.1 Mix Ac f-eq → 3.3 dough\ufffd", "3.3 dough\ufffd F t → 3.1 Bake", "3.1 Bake Ac"]
    assert "<polygon" in Path("e.svg").read_text(encoding="utf-8")


def test_pictures_and_json(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("resvg_py")
    output = run(capsys, recipe, "--parser", "toy", "--svg", "a.svg", "--png", "a.png", "--json", "a.json")
    assert output.endswith("wrote a.json\nwrote a.svg\nwrote a.png\n")
    assert "<polygon" not in Path("a.svg").read_text(encoding="utf-8")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    found = from_json(json.loads(Path("a.json").read_text(encoding="utf-8")))
    assert found.procedure.ingredients == ("flour",)
    assert found.procedure.source == str(recipe)
    assert found.procedure.instructions[2].source == "line 9"


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Mix \xbd cup. Bake.")))
    assert "Mix ½ cup." in run(capsys, "-", "--parser", "bag")


def test_errors(recipe: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "unknown parser 'nonsense'; known: auto, bag" in error(capfd, recipe, "--parser", "nonsense")
    assert "the parser 'linear' takes no --model" in error(capfd, recipe, "--parser", "linear", "--model", "x")
    assert "the parser 'bag' makes no graph of entities" in error(capfd, recipe, "--parser", "bag", "--entities")
    assert "names no flow graph format" in error(capfd, recipe, "--parser", "bag", "-o", "a.pdf")
    assert "the file after --svg must end in .svg" in error(capfd, recipe, "--parser", "bag", "--svg", "a.png")
    assert "cannot read nowhere: No such file" in error(capfd, "nowhere")
    Path("page.html").write_text("<html>hello")
    assert "page.html: no recipe in this web page" in error(capfd, "page.html")
    Path("empty.txt").write_text("")
    assert "empty.txt holds no words" in error(capfd, "empty.txt")
    assert sorted(path.name for path in Path().iterdir()) == ["bread.txt", "empty.txt", "page.html"]


def test_many_dropped_links_are_cut(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(procedure: Procedure) -> Parse:
        return coarsen(procedure, [Reason(2, 0, f"rule {number}") for number in range(12)], "toy")

    monkeypatch.setitem(PARSERS._parts, "toy", backwards)
    assert run(capsys, recipe, "--parser", "toy").endswith("  3 → 1: rule 9\n  … and 2 more\n")


def test_auto_is_the_default(recipe: Path) -> None:
    assert parse(recipe).parser == "auto"
    assert parse(recipe).flow == parse(recipe, "auto").flow


def test_auto_starts_quickly_whatever_is_installed(recipe: Path) -> None:
    code = (
        "import sys; from graph2vid.cli import main; "
        f"main(['parse', {str(recipe)!r}, '--json', 'found.json']); "
        "print({'torch', 'spacy', 'thinc', 'onnxruntime', 'pydantic'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "set()"
    found = json.loads(Path("found.json").read_text())
    assert found["parser"] == "auto"
    assert all(len(pair) == 3 for pair in found["precedence"])


def test_auto_takes_no_model(recipe: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "--parser rules or learned" in error(capfd, recipe, "--model", "en_core_web_sm")


def test_parse_reads_words_and_files(recipe: Path) -> None:
    assert parse("Chop the onion.", "linear").flow.texts == ("Chop the onion.",)
    assert parse("Chop the onion. Fry it.", "bag").procedure.texts == ("Chop the onion.", "Fry it.")
    assert parse(recipe, "bag").procedure == parse(str(recipe), "bag").procedure
    with pytest.raises(Graph2VidError, match=r"cannot read no_such\.txt"):
        parse("no_such.txt")
    with pytest.raises(InputError, match="not int"):
        parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("parser", ["bag", "linear"])
def test_a_flow_graph_in_a_txt_file_is_known_as_one(
    recipe: Path, capfd: pytest.CaptureFixture[str], parser: str
) -> None:
    run(capfd, recipe, "--parser", parser, "-o", "flow.txt")
    assert read_flow("flow.txt", "toy") == FlowGraph.load("flow.txt") == parse(recipe, parser).flow
    assert "flow graph already" in error(capfd, "flow.txt")


def test_a_flow_graph_written_by_hand_is_known_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "salad.txt"
    path.write_text("title: Salad\ncut: cut the tomato\nmix: mix it\n# order\ncut -> mix\n")
    assert read_flow(path).edges == ((0, 1),)
    path.write_text("cut: cut the tomato\ncut -> serve\n")
    with pytest.raises(GraphError, match="serve"):
        read_flow(path)


@pytest.mark.parametrize("text", ["Step 1: Mix it.\nStep 2: Bake it.", "Mix: stir -> well\nBake it", "Mix. Bake."])
def test_words_are_no_flow_graph(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bread.txt"
    path.write_text(text)
    assert len(read_flow(path, "linear")) == len(read_flow(path, "linear").edges) + 1 == 2


def test_the_rules_do_without_torch(tmp_path: Path) -> None:
    """spaCy would import it; and what comes after the parse may use it."""
    pytest.importorskip("spacy", reason="the extra 'text' is not installed")
    pytest.importorskip("torch", reason="the extra 'learn' is not installed")
    (tmp_path / "tea.txt").write_text("Boil the water. Pour the water over the tea.")
    code = (
        "import sys; from graph2vid.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'spacy' in sys.modules and 'torch' not in sys.modules\n"
        "import torch; torch.ones(2)"
    )
    command = [sys.executable, "-c", code, "parse", str(tmp_path / "tea.txt"), "--parser", "rules"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("another_release", [False, True])
def test_the_rules_do_without_the_command_line_of_spacy(another_release: bool) -> None:
    """It is there when it is asked for; and a release of spaCy that needs more of it at once gets it."""
    pytest.importorskip("spacy", reason="the extra 'text' is not installed")
    code = f"""
import sys
from graph2vid.text.rules import dependency_parser as models
class Lacking(type(sys)):
    info = property()  # which cannot be read
if {another_release}:
    models.ModuleType = Lacking
models.spare_imports()
spacy = models._import_spacy(whole=False)
assert ("spacy.cli" in sys.modules) == {another_release}
assert spacy.info(silent=True)["spacy_version"] == spacy.__version__
assert sys.modules["spacy.cli.info"].__file__
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
