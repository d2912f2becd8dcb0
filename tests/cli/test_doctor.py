"""``graph2vid doctor`` says what is here and what its absence costs."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import pytest

from graph2vid import doctor
from graph2vid.cli import main
from graph2vid.trials import TRIALS


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is installed, by name; the core and what a test adds."""
    found = dict.fromkeys(("numpy", "networkx", "typer", "rich"), "1.0")

    def version(name: str) -> str:
        if name not in found:
            raise PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(doctor, "version", version)
    return found


def test_finds_what_is_installed_and_works(installed: dict[str, str]) -> None:
    pytest.importorskip("av")
    installed["av"] = "18.1"
    parts = {part.name: part for part in doctor.examine().parts}
    for name, version in (("numpy", "1.0"), ("av", "18.1")):
        assert parts[name].works and parts[name].version == version and not parts[name].cost


def test_missing_parts_are_named_with_their_cost_and_how_to_get_them(
    installed: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    written = " ".join(capfd.readouterr().out.split())
    assert "✗ av media — videos cannot be opened" in written
    assert "what is missing comes with pip install '.[text,media,ocr,embed," in written


def trials(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the processes that try parts run some code first."""
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


OLD_CALL = """
import av
def open(file, mode=None, format=None, options=None):
    raise TypeError("open() got an unexpected keyword argument 'metadata_errors'")
av.open = open
"""


def test_a_part_that_is_installed_and_does_not_work_is_found_out(
    installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("av")
    trials(tmp_path, monkeypatch, OLD_CALL)
    installed["av"] = "19.0.2"
    path = tmp_path / "doctor.json"
    assert main(["doctor", "--json", str(path)]) == 1
    written = " ".join(capfd.readouterr().out.split())
    assert "does not work (TypeError: open() got an unexpected keyword argument 'metadata_errors')" in written
    assert "installed, but not working: av" in written
    (part,) = (part for part in json.loads(path.read_text(encoding="utf-8"))["parts"] if part["name"] == "av")
    assert part["installed"] and not part["works"] and part["version"] == "19.0.2"


def test_a_part_that_crashes_does_no_harm_to_the_next(
    installed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("resvg_py")
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").touch()
    (tmp_path / "matplotlib" / "figure.py").write_text("import os; os.abort()", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    installed |= {"matplotlib": "1.0", "resvg-py": "1.0"}
    parts = {part.name: part for part in doctor.examine().parts}
    assert "it crashes (SIGABRT)" in parts["matplotlib"].cost
    assert parts["resvg-py"].works


def test_every_optional_part_has_a_trial_or_is_imported_by_its_name() -> None:
    optional = {name for name, extra, _, _ in doctor._PACKAGES if extra != "core"}
    assert optional >= TRIALS.keys()
    installed = [name for name in optional - TRIALS.keys() if doctor._version(name)]
    assert installed and all(find_spec(name.replace("-", "_")) for name in installed)


def test_missing_kernels_are_said_to_be_slow(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "graph2vid._native", None)  # importing it now fails
    assert not doctor.examine().compiled
    assert main(["doctor"]) == 0
    written = capfd.readouterr().out
    assert "slow" in written
    assert "NumPy" in written


def test_json(installed: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "doctor.json"
    assert main(["doctor", "--json", str(path)]) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["format"] == "graph2vid-doctor"
    assert written["processors"] >= 1
    assert {"name", "extra", "installed", "works", "version", "use", "cost"} == set(written["parts"][0])
