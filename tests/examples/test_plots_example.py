"""The plots of the documentation are drawn."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "plots.py"


def test_plots_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = runpy.run_path(str(EXAMPLE))["draw"](tmp_path)
    page = (EXAMPLE.parent.parent / "docs" / "guides" / "plots.md").read_text(encoding="utf-8")
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in drawn)
    for file in drawn:
        assert (EXAMPLE.parent.parent / "docs" / "assets" / file.name).exists()
        assert f"assets/{file.name}" in page
