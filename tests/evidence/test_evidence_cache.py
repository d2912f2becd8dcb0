"""Results kept on disk: found again, made anew when damaged, never in the way."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.evidence_cache import Cache, cache_folder, content_hash, text_hash

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
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "graph2vid"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard says is to be ignored
    assert cache_folder() == tmp_path / ".cache" / "graph2vid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "graph2vid"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "graph2vid"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "graph2vid" / "Cache"
    monkeypatch.setenv("GRAPH2VID_CACHE", "elsewhere")
    assert cache_folder() == Path("elsewhere") == Cache().folder


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_without_a_home_the_folder_must_be_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GRAPH2VID_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"graph2vid-{os.getuid()}"
    assert cache_folder() == folder and folder.stat().st_mode & 0o777 == 0o700
    assert cache_folder() == folder  # the second time, too
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    folder.rename(tmp_path / "graph2vid-54321")
    with pytest.raises(Graph2VidError, match="graph2vid-54321 is somebody else's: set GRAPH2VID_CACHE"):
        cache_folder()


# -- the limit of the user's cache ---------------------------------------------------------------------------


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Cache]:
    """Return what makes the user's cache with a limit."""
    monkeypatch.setenv("GRAPH2VID_CACHE", str(tmp_path / "kept"))

    def made(limit: str) -> Cache:
        monkeypatch.setenv("GRAPH2VID_CACHE_LIMIT", limit)
        return Cache()

    return made


@pytest.mark.parametrize(
    ("text", "limit"), [("", 2 << 30), ("0", 0), ("1500", 1500), ("2k", 2048), ("1.5G", 3 << 29), ("1 GiB", 1 << 30)]
)
def test_the_limit_is_a_size(users: Callable[[str], Cache], text: str, limit: int) -> None:
    assert users(text).limit == limit


def test_a_limit_that_is_none(users: Callable[[str], Cache]) -> None:
    with pytest.raises(InputError, match="GRAPH2VID_CACHE_LIMIT must be a size such as 500M"):
        users("much")


def test_a_folder_of_ones_own_has_no_limit(users: Callable[[str], Cache], tmp_path: Path) -> None:
    users("1K")
    cache = Cache(tmp_path / "own")
    cache.array("x", KEY, lambda: np.zeros(10_000))
    assert cache.limit is None and len(cache.entries()) == 1


def keep(cache: Cache, number: int, when: float) -> None:
    """Keep 8000 bytes under a number, as if at a time."""
    before = {entry.path for entry in cache.entries()}
    cache.array("x", {"number": number}, lambda: np.zeros(1000))
    for entry in cache.entries():
        if entry.path not in before:
            os.utime(entry.path, (when, when))


def is_kept(cache: Cache, number: int) -> bool:
    again = Cache(cache.folder)
    again.array("x", {"number": number}, lambda: np.zeros(0))
    return again.hits == 1


def test_what_was_not_used_for_longest_goes_first(users: Callable[[str], Cache]) -> None:
    cache = users("50K")
    for number in range(5):
        keep(cache, number, when=1000.0 + number)
    cache.array("x", {"number": 0}, never)  # used: it is the newest now
    (cache.folder / "notes.txt").write_text("mine" * 10_000)
    for number in range(5, 8):
        keep(users("50K"), number, when=2e9 + number)  # as another process does
    assert sum(entry.size for entry in cache.entries()) <= 50 * 1024
    assert (cache.folder / "notes.txt").exists()
    assert [is_kept(cache, number) for number in (0, 7, 1, 2)] == [True, True, False, False]


def test_one_process_keeps_the_limit(users: Callable[[str], Cache]) -> None:
    cache = users("100K")
    for number in range(60):
        cache.array("x", {"number": number}, lambda: np.zeros(1000))
        assert sum(entry.size for entry in cache.entries()) <= 100 * 1024
    assert len(cache.entries()) >= 8


def test_what_is_larger_than_the_limit_is_not_kept(users: Callable[[str], Cache]) -> None:
    for limit in ("0", "7K"):
        cache = users(limit)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.array("x", KEY, lambda: np.zeros(1000)).shape == (1000,)
        assert not cache.entries()


def test_an_entry_that_goes_while_it_is_looked_for_is_made_anew(users: Callable[[str], Cache]) -> None:
    one, other = users("1M"), users("1M")
    assert one.json("x", KEY, lambda: 1) == 1
    other_size = only_file(one.folder).stat().st_size
    assert other.clear() == (1, other_size)
    assert one.json("x", KEY, lambda: 2) == 2


def test_clearing_leaves_what_is_not_ours(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "kept")
    cache.json("speech", KEY, lambda: [1])
    cache.array("clips", KEY, lambda: np.ones(3))
    (cache.folder / "notes.json").write_text("{}")
    (cache.folder / f".{cache.entries()[0].path.name}.abc.part").write_text("half")
    assert cache.clear("speech")[0] == 1
    assert [entry.kind for entry in cache.entries()] == ["clips"]
    assert cache.clear()[0] == 1
    assert (cache.folder / "notes.json").exists()
    (cache.folder / "notes.json").unlink()
    for path in cache.folder.iterdir():
        os.utime(path, (1000.0, 1000.0))  # whoever was writing it has been gone for long
    cache.clear()
    assert not cache.folder.exists()


def _work(folder: Path, seed: int) -> int:
    os.environ["GRAPH2VID_CACHE"], os.environ["GRAPH2VID_CACHE_LIMIT"] = str(folder), "60K"
    cache = Cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(60):
            which = (number * (seed + 1)) % 11
            found = cache.array("x", {"number": which}, lambda which=which: np.full(1000, which))
            assert (found == which).all()
    return cache.hits


def test_processes_share_it(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert sum(pool.map(_work, [tmp_path / "kept"] * 3, range(3))) > 0
    assert not list((tmp_path / "kept").glob(".*"))
