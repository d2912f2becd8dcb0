"""``graph2vid doctor`` says what is here and what its absence costs."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from graph2vid import doctor
from graph2vid.cli import main


def test_finds_what_is_installed() -> None:
    parts = {part.name: part for part in doctor.examine().parts}
    assert parts["numpy"].installed
    assert parts["numpy"].version == np.__version__
    assert parts["numpy"].cost == ""


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "tslearn":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    (part,) = (part for part in doctor.examine().parts if part.name == "tslearn")
    assert not part.installed
    assert "graph2vid[peers]" in part.cost


def test_missing_kernels_are_said_to_be_slow(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "graph2vid._native", None)  # importing it now fails
    assert not doctor.examine().compiled
    assert main(["doctor"]) == 0
    written = capfd.readouterr().out
    assert "slow" in written
    assert "NumPy" in written


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "doctor.json"
    assert main(["doctor", "--json", str(path)]) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["format"] == "graph2vid-doctor"
    assert written["processors"] >= 1
    assert {"name", "room", "installed", "version", "use", "cost"} == set(written["parts"][0])
