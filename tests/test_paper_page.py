"""The page that maps the paper to the code names things that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "background" / "paper.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(graph2vid(?:\.\w+)+)`", PAGE)))
FILES = sorted(set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/.]+)`", PAGE)))


def resolve(name: str) -> object:
    """Return the module, class, function or attribute of a dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part) if hasattr(found, part) else field(found, part)
        return found
    raise AssertionError(name)


def field(owner: object, name: str) -> object:
    """Return the annotation of a dataclass' field without a default."""
    return owner.__annotations__[name]


@pytest.mark.parametrize("name", NAMES)
def test_named_objects_exist(name: str) -> None:
    if ".learn" in name:
        pytest.importorskip("torch")
    assert resolve(name) is not None


@pytest.mark.parametrize("path", FILES)
def test_named_files_exist(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_part_of_the_paper_is_there() -> None:
    assert len(NAMES) > 25
    for part in ("Eq. 1", "Eq. 2", "Eq. 3", "Eq. 4", "Algorithm 1", "Table 1", "Table 2", "Table 3", "L_clust"):
        assert part in PAGE
    for function in ("forward_with_visited_sets", "backward_with_fronts"):
        assert function in (ROOT / "tests" / "tsort" / "transcriptions.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", ["README.md", "docs/index.md", "docs/background/paper.md", "CITATION.cff"])
def test_the_paper_is_cited(place: str) -> None:
    text = (ROOT / place).read_text(encoding="utf-8")
    assert "arxiv.org/abs/2210.04996" in text and "Graph2Vid: Flow graph to" in text.replace("\n", " ")


def test_the_package_cites_the_paper() -> None:
    import graph2vid

    assert "2210.04996" in (graph2vid.__doc__ or "")
