"""What this process may use: limits of the system, of cgroups and of the process; what they make it refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid import _memory
from graph2vid.alignment.durations import Durations
from graph2vid.errors import TooLargeError

GIB = 1 << 30

V2 = "36 25 0:31 {root} {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "35 31 0:32 {root} {point} rw,relatime - cgroup cgroup rw,memory\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], int]]:
    """Return a function that answers `available_memory` with files in place of those of this machine."""

    def answer(files: dict[str, str]) -> int:
        for name, text in files.items():
            path = tmp_path / name.removeprefix("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("{point}", str(tmp_path / "cgroup")))
        monkeypatch.setattr(_memory, "_read", read)
        monkeypatch.setattr(_memory, "_rlimits", lambda: iter(()))
        _memory._cgroup_files.cache_clear()
        return _memory.available_memory()

    def read(path: Path) -> str:
        inside = path if path.is_relative_to(tmp_path) else tmp_path / str(path).removeprefix("/")
        return inside.read_text() if inside.is_file() else ""

    yield answer
    _memory._cgroup_files.cache_clear()


MEMINFO = {"/proc/meminfo": "MemTotal: 20971520 kB\nMemAvailable: 10485760 kB\n"}


def test_the_system_alone(system: Callable[[dict[str, str]], int]) -> None:
    assert system(MEMINFO) == 10 * GIB


@pytest.mark.parametrize("level", ["", "a/", "a/b/"])
def test_cgroup_v2_at_any_level(system: Callable[[dict[str, str]], int], level: str) -> None:
    files = {
        "/proc/self/cgroup": "0::/a/b\n",
        "/proc/self/mountinfo": V2.replace("{root}", "/"),
        "cgroup/memory.max": "max\n",
        "cgroup/a/memory.max": "max\n",
        "cgroup/a/b/memory.max": "max\n",
    }
    own = {
        f"cgroup/{level}memory.max": f"{2 * GIB}\n",
        f"cgroup/{level}memory.current": f"{GIB}\n",
        f"cgroup/{level}memory.stat": f"anon 5\ninactive_file {GIB // 2}\n",  # given up when memory is short
    }
    assert system(MEMINFO | files | own) == 3 * GIB // 2


def test_cgroup_v1(system: Callable[[dict[str, str]], int]) -> None:
    files = {
        "/proc/self/cgroup": "5:cpu:/\n4:memory:/jobs/one\n0::/\n",
        "/proc/self/mountinfo": V1.replace("{root}", "/"),
        "cgroup/memory.limit_in_bytes": "9223372036854771712\n",  # none
        "cgroup/jobs/memory.limit_in_bytes": f"{8 * GIB}\n",
        "cgroup/jobs/memory.usage_in_bytes": f"{GIB}\n",
        "cgroup/jobs/one/memory.limit_in_bytes": f"{4 * GIB}\n",
        "cgroup/jobs/one/memory.usage_in_bytes": f"{GIB}\n",
        "cgroup/jobs/one/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 4}\n",
    }
    assert system(MEMINFO | files) == 13 * GIB // 4


@pytest.mark.parametrize("root", ["/docker/abc", "/"])
def test_in_a_container(system: Callable[[dict[str, str]], int], root: str) -> None:
    """The mount shows the container's own group as its root, whatever the path of the process says."""
    files = {
        "/proc/self/cgroup": f"0::{root}\n",
        "/proc/self/mountinfo": V2.replace("{root}", root),
        "cgroup/memory.max": f"{GIB}\n",
        "cgroup/memory.current": "0\n",
    }
    assert system(MEMINFO | files) == GIB


def test_a_share_for_each_process(system: Callable[[dict[str, str]], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "_shares", 1)
    _memory.share_memory(4)
    assert system(MEMINFO) == 10 * GIB // 4
    with pytest.raises(g2v.errors.InputError, match="at least 1 process"):
        _memory.share_memory(0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process(name: str) -> None:
    code = f"""
import resource
from graph2vid._memory import available_memory
resource.setrlimit(resource.{name}, (3 << 30, 3 << 30))
first = available_memory()
block = bytearray(1 << 29)
print(first, first - available_memory())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    first, taken = (int(number) for number in out.split())
    assert first < 3 << 30
    assert abs(taken - (1 << 29)) < 1 << 24


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """One gibibyte is all there is."""
    monkeypatch.setattr(_memory, "_system", lambda: GIB)


CHAIN = g2v.FlowGraph.chain(["a", "b", "c"])
COSTS = np.zeros((3, 6))


@pytest.mark.parametrize("clips", [1_000_000_000, [1, 2, 10**15]])
def test_durations_that_nobody_can_mean(clips: object) -> None:
    with pytest.raises(TooLargeError, match=r"clips are asked for, and 1,048,576 are the most: give fewer"):
        g2v.align(CHAIN, COSTS, 1.0, durations=clips)


def test_tables_of_durations_are_bounded() -> None:
    with pytest.raises(TooLargeError, match="asked for, and"):
        Durations.log_normal([1e9], [5.0], longest=10**9)
    with pytest.raises(TooLargeError, match="asked for, and"):
        Durations.mine([[1e30]], longest=2**40)


@pytest.mark.usefixtures("little")
def test_tables_of_durations_are_bounded_by_memory() -> None:
    with pytest.raises(TooLargeError, match=r"durations of 40 steps and 1,000,000 clips needs 1\.2 GiB of memory"):
        Durations.least(1_000_000, 40)


@pytest.mark.usefixtures("little")
def test_building_is_bounded_by_memory() -> None:
    bag = g2v.FlowGraph.bag([str(step) for step in range(22)])
    with pytest.raises(TooLargeError, match=r"more than the 1,\d+,\d+ that fit into memory: give this process more"):
        g2v.TSortGraph.compile(bag)


@pytest.mark.usefixtures("little")
def test_posteriors_are_bounded_by_memory() -> None:
    match = np.zeros((3, 3_000_000), np.float32)
    with pytest.raises(TooLargeError, match="the bound is 512 MiB"):
        g2v.posterior(CHAIN, match, 1.0)


def test_a_machine_is_bounded_by_memory() -> None:
    with pytest.raises(TooLargeError, match=r"need at least .* KiB; the bound is 1\.0 KiB: raise memory_limit"):
        g2v.align(CHAIN, COSTS, 1.0, repeat=1.0, memory_limit=1024)


def test_more_orders_than_memory_holds() -> None:
    bag = g2v.FlowGraph.bag([str(step) for step in range(6)])
    match = np.random.default_rng(0).random((6, 40))
    with pytest.raises(TooLargeError, match=r"ask for at most k=\d+, or raise memory_limit"):
        g2v.k_best(bag, match, 1.0, k=10**9, memory_limit=200_000)
    assert len(g2v.k_best(CHAIN, COSTS, 1.0, k=10**9)) == 1  # there are no more


def test_a_stream_says_when_it_is_full() -> None:
    stream = g2v.Stream(CHAIN, memory_limit=20_000)
    with pytest.raises(TooLargeError, match="begin it with a lag"):
        for _ in range(100):
            stream.push([0.0, 0.0, 0.0], 1.0)
    assert 5 < len(stream) < 20
    lagging = g2v.Stream(CHAIN, lag=2, memory_limit=20_000)
    for _ in range(100):
        lagging.push([0.0, 0.0, 0.0], 1.0)
