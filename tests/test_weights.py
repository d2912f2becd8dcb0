"""Weights of other people's packages are loaded only as the files that graph2vid was made with."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from graph2vid import weights
from graph2vid.errors import Graph2VidError
from graph2vid.weights import WEIGHTS, check_weights


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package "toy" with one file of weights."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "model.bin").write_bytes(b"weights")
    monkeypatch.setitem(WEIGHTS, "toy", {"model.bin": hashlib.sha256(b"weights").hexdigest()})
    return tmp_path / "toy"


@pytest.mark.parametrize("name", WEIGHTS)
def test_installed_weights_are_known(name: str) -> None:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"{name} is not installed")
    check_weights(name, Path(spec.origin).parent)


def test_a_changed_file_is_refused_in_one_line(package: Path) -> None:
    check_weights("toy", package)
    (package / "model.bin").write_bytes(b"Weights")
    with pytest.raises(Graph2VidError, match=r"model.bin is not the file .*install the package toy anew$") as refused:
        check_weights("toy", package)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused(package: Path) -> None:
    (package / "model.bin").unlink()
    with pytest.raises(Graph2VidError, match=r"cannot read .*model.bin: No such file"):
        check_weights("toy", package)


def test_files_are_read_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_weights("toy", package)

    def read(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(weights.hashlib, "file_digest", read)
    check_weights("toy", package)
    (package / "model.bin").touch()
    with pytest.raises(AssertionError, match="read again"):
        check_weights("toy", package)


def test_without_a_cache_files_are_checked_all_the_same(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH2VID_CACHE", "/dev/null/nowhere")
    check_weights("toy", package)
    (package / "model.bin").write_bytes(b"other")
    with pytest.raises(Graph2VidError, match="is not the file"):
        check_weights("toy", package)


def test_every_loader_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WEIGHTS:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    for files in WEIGHTS.values():
        for file in files:
            monkeypatch.setitem(files, file, "0" * 64)
    from graph2vid.evidence import text_embedder
    from graph2vid.evidence.embed.interface import embedder
    from graph2vid.evidence.speech import BUNDLED, load_model
    from graph2vid.text.rules.dependency_parser import _find, language_model

    embedder.cache_clear()
    for load in (
        lambda: text_embedder("wordllama").texts(["chop the onion"]),
        lambda: text_embedder("minilm"),
        lambda: load_model.__wrapped__(BUNDLED),
    ):
        with pytest.raises(Graph2VidError, match="is not the file"):
            load()
    if "mooring" in (_find() or ""):
        with pytest.raises(Graph2VidError, match="is not the file"):
            language_model.__wrapped__()
