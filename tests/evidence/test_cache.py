"""Results kept on disk: found again, made anew when damaged, never in the way."""

from __future__ import annotations

import errno
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.cache import Cache, cache_folder, content_hash, text_hash

KEY = {"content": "ab12", "model": "tiny.en", "beam": 1, "vad": True}


def never() -> Any:
    raise AssertionError("this was in the cache")


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_value_is_made_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert not cache.folder.exists()
    value = {"cues": [[0.1, 2.5, "zwei Eier ☺"]], "n": 3}
    assert cache.json("speech", KEY, lambda: value) == value
    assert cache.json("speech", dict(reversed(KEY.items())), never) == value
    assert (cache.hits, cache.misses) == (1, 1)
    assert only_file(cache.folder).name.startswith("speech-") and only_file(cache.folder).suffix == ".json"

    again = Cache(cache.folder)
    assert again.json("speech", KEY, never) == value
    assert again.json("speech", KEY | {"beam": 5}, lambda: 0) == 0
    assert again.json("other", KEY, lambda: None) is None
    assert again.json("other", KEY, never) is None
    assert (again.hits, again.misses) == (2, 2)


def test_the_first_time_gives_what_the_second_gives(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.json("a", KEY, lambda: ((1, 2), "x")) == [[1, 2], "x"] == cache.json("a", KEY, never)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_an_array_is_made_once(tmp_path: Path, dtype: type) -> None:
    cache = Cache(tmp_path)
    array: NDArray[Any] = np.arange(12).reshape(3, 4).astype(dtype)
    for make in (lambda: array, never):
        found = cache.array("embedding", KEY, make)
        np.testing.assert_array_equal(found, array)
        assert found.dtype == dtype
    np.testing.assert_array_equal(np.load(only_file(tmp_path), allow_pickle=False), array)
    assert cache.array("empty", KEY, lambda: np.zeros((0, 7))).shape == (0, 7)
    assert cache.array("empty", KEY, never).shape == (0, 7)


def damages() -> dict[str, Callable[[bytes], bytes]]:
    return {
        "empty": lambda data: b"",
        "short": lambda data: data[: len(data) // 2],
        "shorter by one": lambda data: data[:-2],
        "not text": lambda data: b"\xff\xfe\x00" + data,
        "foreign": lambda data: b'{"value": 3}',
        "nested": lambda data: b"[" * 100_000,
        "one byte changed": lambda data: data.replace(b"7", b"8"),
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_entry_is_made_anew(tmp_path: Path, damage: str) -> None:
    def value() -> Any:
        return [7, 7]

    def array() -> Any:
        return np.frombuffer(b"7777", dtype=np.uint8)

    for kind, make in (("json", value), ("array", array)):
        cache = Cache(tmp_path / kind)
        keep = getattr(cache, kind)
        first = keep("x", KEY, make)
        path = only_file(cache.folder)
        path.write_bytes(damages()[damage](path.read_bytes()))
        np.testing.assert_array_equal(keep("x", KEY, make), first)
        np.testing.assert_array_equal(keep("x", KEY, never), first)
        assert (cache.hits, cache.misses) == (1, 2)


def test_an_entry_under_a_wrong_name_is_not_believed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.json("x", KEY, lambda: 1)
    path = only_file(tmp_path)
    cache.json("x", KEY | {"beam": 5}, lambda: 2)
    (other,) = set(tmp_path.iterdir()) - {path}
    path.write_bytes(other.read_bytes())
    assert cache.json("x", KEY, lambda: 3) == 3


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        Cache(tmp_path).array("x", KEY, lambda: np.array([{}]))
    assert not list(tmp_path.iterdir())


def test_what_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    cache = Cache(tmp_path)
    for keep in (cache.json, cache.array):
        with pytest.raises(KeyboardInterrupt):
            keep("x", KEY, interrupted)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Cache(tmp_path).json("x", KEY, lambda: 1)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    cache = Cache(tmp_path)
    with pytest.warns(UserWarning, match=r"results are not kept in .*: cannot write .*No space left") as caught:
        assert cache.json("x", KEY, lambda: 1) == 1
        assert cache.array("y", KEY, lambda: np.ones(2)).sum() == 2
    assert len(caught) == 1 and not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_warns_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.warns(UserWarning, match="results are not kept in"):
        assert cache.json("x", KEY, lambda: 1) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.json("x", KEY, lambda: 2) == 2
    assert (cache.hits, cache.misses) == (0, 2)


def test_entries_stay_readable_by_others(tmp_path: Path) -> None:
    Cache(tmp_path).json("x", KEY, lambda: [1])
    entry = json.loads(only_file(tmp_path).read_text(encoding="utf-8"))
    assert entry["key"] == KEY and entry["value"] == [1]


@pytest.mark.parametrize("kind", ["", "a/b", "..", "a b"])
def test_kinds_are_names(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match="letters, digits and underscores"):
        Cache(tmp_path).json(kind, KEY, never)


def test_content_hash(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"a" * 3_000_000)
    two.write_bytes(b"a" * 3_000_000)
    assert content_hash(one) == content_hash(two)
    two.write_bytes(b"a" * 2_999_999 + b"b")
    assert content_hash(one) != content_hash(two)
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Graph2VidError, match="cannot read"):
            content_hash(path)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_text_hash_tells_texts_apart(left: list[str], right: list[str]) -> None:
    assert (text_hash(*left) == text_hash(*right)) == (left == right)


def test_where_results_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRAPH2VID_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("out/result.json") == Path("out/result.json.cache")
    assert cache_folder() == tmp_path / "graph2vid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "graph2vid"
    monkeypatch.setenv("GRAPH2VID_CACHE", "elsewhere")
    assert cache_folder() == cache_folder("out/result.json") == Path("elsewhere")
