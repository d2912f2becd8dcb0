"""The examples of the README and of the documentation run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from graph2vid.cli import main
from graph2vid.sample import FILES, NarratedFiles

ROOT = Path(__file__).parent.parent
# Pages whose commands are run, and those whose Python is.
COMMANDS = ("README.md", "docs/start/researcher.md", "docs/start/video-maker.md", "docs/guides/arrays.md")
PYTHON = (
    "README.md",
    "docs/start/researcher.md",
    "docs/guides/arrays.md",
    "docs/guides/confidence.md",
    "docs/guides/evaluate.md",
    "docs/guides/exports.md",
    "docs/guides/extended-model.md",
    "docs/guides/flow-graphs.md",
    "docs/guides/plots.md",
    "docs/guides/procedures.md",
    "docs/guides/report.md",
    "docs/guides/stream.md",
    "docs/guides/training.md",
    "docs/guides/videos.md",
    "docs/reference/datasets.md",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files of the samples."""
    for file in (*FILES, *NarratedFiles().all):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    return tmp_path


@pytest.mark.parametrize("page", PYTHON)
def test_python_examples_run(page: str, folder: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:  # one after the other: a later one may use what an earlier one made
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run(page: str, folder: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(r"```csv\n(.*?)```", text, flags=re.DOTALL):
        (folder / "corrected.csv").write_text(block, encoding="utf-8")
    lines = re.findall(r"^(?:    graph2vid|<!-- generated: run) (.*?)(?: -->| *#.*)?$", text, flags=re.MULTILINE)
    assert lines
    for line in lines:
        assert main(shlex.split(line)) == 0, line
    for line in re.findall(r"^    (python -c .*)$", text, flags=re.MULTILINE):
        exec(shlex.split(line)[2], {})


def test_text_notation_in_the_readme_is_one() -> None:
    from graph2vid import FlowGraph

    (block,) = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert FlowGraph.from_text(block).title == "Salad"


def test_pages_are_whole_unbuilt() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "--8<--" not in text and "<!-- made" not in text, page
        for part in re.findall(r"<!-- generated: [^\n]* -->\n(.*?)<!-- /generated -->", text, flags=re.DOTALL):
            assert part.strip(), page
        assert text.count("<!-- generated: ") == text.count("<!-- /generated -->"), page


def test_a_page_that_is_not_current_is_found_out() -> None:
    sys.path.append(str(ROOT / "docs"))
    from generated import filled

    page = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    assert filled(page) == page
    assert (
        filled(page.replace("| `percentile` |", "| `old` |")) == page != page.replace("| `percentile` |", "| `old` |")
    )


def test_links_between_files_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page}: {target}"


def test_the_documentation_has_four_parts_and_an_appendix() -> None:
    folders = {path.parent.name for path in ROOT.glob("docs/*/*.md")}
    assert folders == {"start", "guides", "reference", "background", "appendix"}
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/**/*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in nav, page


def test_nothing_asks_a_package_index_for_graph2vid() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("src/**/*.py")]
    for path in texts:
        wrong = re.search(r"pip install '?\"?graph2vid(?!-….whl)[^\n]*", path.read_text(encoding="utf-8"))
        assert not wrong, f"{path}: {wrong and wrong[0]}"


def test_errors_share_one_hint() -> None:
    from graph2vid.errors import MissingDependencyError, how_to_install

    assert str(MissingDependencyError("plots need matplotlib", extra="plot")) == (
        f"plots need matplotlib: {how_to_install('plot')}"
    )
    spelt_out = [path for path in (ROOT / "src").rglob("*.py") if re.search(r"pip install '", path.read_text("utf-8"))]
    assert [path.name for path in spelt_out] == ["errors.py"]


def test_the_places_that_contributing_names_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|docs|benchmarks|examples|tools|requirements)/[\w./-]*)`", text)
    missing = [path for path in named if "NAME" not in path and not (ROOT / path).exists()]
    assert len(named) > 40 and not missing, missing
    for file in re.findall(r"`(\w+\.(?:py|cpp|cu))`", text):
        assert list((ROOT / "src").rglob(file)), file


def test_the_table_beside_other_tools_names_tests_that_exist() -> None:
    page = (ROOT / "docs/guides/studio.md").read_text(encoding="utf-8").partition("## Beside other tools")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert rows[0][2:] == ["Label Studio", "VIA", "ELAN", "LosslessCut", "YouTube Studio", "Descript"]
    assert len(rows) > 30 and all(len(row) == 8 and all(row) for row in rows[2:])
    for feature, ours, *_ in rows[2:]:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", ours)
        assert bool(named) == ours.startswith("yes: ") and (named or ours == "no"), feature
        assert ours.count("`") == 2 * len(named), feature
        for file, test in named:
            assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), (feature, file, test)
