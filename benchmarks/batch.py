"""``python -m benchmarks batch``: whole corpora from Parquet to Parquet; a run is a process of its own, this module."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT
from benchmarks.cases import CASES, choose
from benchmarks.machine import kernels_or_error, machine
from benchmarks.memory import peak_bytes
from benchmarks.report import Report, Table, duration, table, times
from graph2vid.errors import Graph2VidError

VIDEOS = 20_000
WIDTH = 512
_CROSSTASK = next(case for case in CASES if case.name == "crosstask")
_CHUNK = 500
NODES = (1, 2, 4, 16)
_ROUNDS = 3
_LOOK_SECONDS = 0.1
_PR_SET_CHILD_SUBREAPER = 36


def bench_batch(
    only: Sequence[str] | None = None,
    videos: int = VIDEOS,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure batches: ready scores with one worker and two, the extended model, features, memory over ten times the
    rows, and Ray.

    Parameters
    ----------
    only : sequence of str, optional
        Some of ``scores``, ``extended``, ``features``, ``memory``, ``ray``, ``ray-many`` and ``ray-nodes``.
    videos : int
        Rows of the manifest of scores; there are a tenth as many with features, and ten times as many for memory.
    progress : callable, optional
        Is told what is measured.
    """
    kernels_or_error()
    before = machine()
    begin = time.perf_counter()
    cases: dict[str, Callable[[Path, int], dict[str, Any]]] = {
        "scores": _scores,
        "extended": _extended,
        "features": _features,
        "memory": _memory,
        "ray": lambda folder, videos: _ray(folder, videos, _ROUNDS),
        "ray-many": lambda folder, videos: _ray(folder, 10 * videos, 1),
        "ray-nodes": _ray_nodes,
    }
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="graph2vid-bench-") as folder:
        for name, measure in choose({name: (name, case) for name, case in cases.items()}, only):
            if progress is not None:
                progress(name)
            found.append({"name": name} | measure(Path(folder), videos))
    return Report("batch", tuple(only or ()), before, tuple(found), _tables(found), time.perf_counter() - begin)


def _scores(folder: Path, videos: int) -> dict[str, Any]:
    manifest = write_manifest(folder / "scores.parquet", videos)
    # In turns, and the best of each: what else the machine does only ever adds time.
    turns = [[_run_apart(folder, manifest, workers, "local") for workers in (1, 2)] for _ in range(_ROUNDS)]
    one, two = (min(run["seconds"] for run in runs) for runs in zip(*turns, strict=True))
    least = min((run for _, run in turns), key=lambda run: float(run["processor_seconds"]))
    return {
        "videos": videos,
        "seconds": two,
        "videos_per_second": videos / two,
        "one_worker_seconds": one,
        "scaling": one / two,
        "processor_seconds": least["processor_seconds"],
        "driver_share": least["driver_processor_seconds"] / least["processor_seconds"],
    }


def _extended(folder: Path, videos: int) -> dict[str, Any]:
    """With repeats and durations: alignment alone, and with confidences; beside the plain model without them."""
    videos = max(videos // 2, 1)
    path = folder / "durations.json"
    told = {"format": "graph2vid-durations", "version": 1, "others": {"median": 8.0, "spread": 0.6}}
    path.write_text(json.dumps(told), encoding="utf-8")
    manifest = write_manifest(folder / "extended.parquet", videos)
    options, alone = {"repeat": "3", "durations": str(path)}, {"confidence": False}
    plain, hard, sure = (
        _run_apart(folder, manifest, 2, "local", asked)["seconds"] for asked in (alone, options | alone, options)
    )
    return {
        "videos": videos,
        "seconds": hard,
        "videos_per_second": videos / hard,
        "plain_seconds": plain,
        "sure_seconds": sure,
    }


def _features(folder: Path, videos: int) -> dict[str, Any]:
    videos = max(videos // 10, 1)
    manifest = write_manifest(folder / "features.parquet", videos, WIDTH)
    run = _run_apart(folder, manifest, 2, "local")
    return {"videos": videos, "seconds": run["seconds"], "videos_per_second": videos / run["seconds"], "width": WIDTH}


def _memory(folder: Path, videos: int) -> dict[str, Any]:
    few, many = (
        _run_apart(folder, write_manifest(folder / f"memory-{rows}.parquet", rows), 2, "local")
        for rows in (videos, 10 * videos)
    )
    return {
        "videos": 10 * videos,
        "seconds": many["seconds"],
        "videos_per_second": 10 * videos / many["seconds"],
        "driver_bytes": many["driver_bytes"],
        "worker_bytes": many["worker_bytes"],
        "of_videos": videos,
        "driver_bytes_of_fewer": few["driver_bytes"],
        "worker_bytes_of_fewer": few["worker_bytes"],
    }


def _ray(folder: Path, videos: int, rounds: int) -> dict[str, Any]:
    if find_spec("ray") is None:
        return {"videos": videos, "seconds": None, "what": "ray is not installed"}
    manifest = write_manifest(folder / "ray.parquet", videos)
    turns = [[_run_apart(folder, manifest, 2, engine) for engine in ("local", "ray")] for _ in range(rounds)]
    manifest.unlink()
    local, ray = (min(runs, key=_seconds_of_work) for runs in zip(*turns, strict=True))
    return {
        "videos": videos,
        "driver_bytes": ray["driver_bytes"],
        "worker_bytes": ray["worker_bytes"],
        "seconds": ray["seconds"],
        "videos_per_second": videos / ray["seconds"],
        "local_seconds": local["seconds"],
        "start_seconds": ray["start_seconds"],
        "overhead": ray["seconds"] / local["seconds"],
        "overhead_without_start": _seconds_of_work(ray) / local["seconds"],
    }


def _seconds_of_work(run: Mapping[str, Any]) -> float:
    return float(run["seconds"] - run["start_seconds"])


def _ray_nodes(folder: Path, videos: int) -> dict[str, Any]:
    """As many actors on ever more nodes, all of them on this machine: what nodes themselves cost."""
    if find_spec("ray") is None:
        return {"videos": videos, "seconds": None, "what": "ray is not installed"}
    manifest = write_manifest(folder / "nodes.parquet", videos)
    runs = [_run_apart(folder, manifest, max(NODES), "ray", nodes=nodes) for nodes in NODES]
    seconds = [_seconds_of_work(run) for run in runs]
    driver = [run["driver_processor_seconds"] for run in runs]
    return {
        "videos": videos,
        "seconds": seconds[-1],
        "videos_per_second": videos / seconds[-1],
        "nodes": NODES,
        "seconds_by_nodes": seconds,
        "driver_processor_seconds_by_nodes": driver,
    }


# -- manifests -----------------------------------------------------------------------------------------------


def write_manifest(path: Path, videos: int, width: int | None = None) -> Path:
    """Write a manifest of random videos of the procedure ``crosstask``: scores [9, 100], or features of that width."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    flow, clips = _CROSSTASK.flow, _CROSSTASK.clips
    flow.save(path.with_name("crosstask.flow"))
    random = np.random.default_rng(0)
    if width is not None:
        np.save(path.with_name("steps.npy"), random.standard_normal((len(flow), width), np.float32))
    shape = (len(flow), clips) if width is None else (clips, width)
    matrix = pa.list_(pa.list_(pa.float32()))
    fields = [("id", pa.string()), ("procedure", pa.string()), ("scores" if width is None else "clips", matrix)]
    schema = pa.schema(fields if width is None else [*fields, ("steps", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=["procedure"]) as writer:  # of random numbers there is none
        for start in range(0, videos, _CHUNK):
            count = min(_CHUNK, videos - start)
            numbers = pa.array(random.standard_normal(count * shape[0] * shape[1], np.float32))
            lines = pa.ListArray.from_arrays(_offsets(count * shape[0], shape[1]), numbers)
            columns = {
                "id": pa.array([f"video{at:07d}" for at in range(start, start + count)]),
                "procedure": pa.array(["crosstask.flow"] * count),
                fields[-1][0]: pa.ListArray.from_arrays(_offsets(count, shape[0]), lines),
                "steps": pa.array(["steps.npy"] * count),
            }
            writer.write_table(pa.table([columns[name] for name in schema.names], schema=schema))
    return path


def _offsets(count: int, length: int) -> Any:
    import pyarrow as pa

    return pa.array(np.arange(count + 1, dtype=np.int32) * length)


# -- runs in processes of their own --------------------------------------------------------------------------


def _run_apart(
    folder: Path, manifest: Path, workers: int, engine: str, options: Mapping[str, Any] | None = None, nodes: int = 1
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as out:
        asked = json.dumps(dict(options or {}))
        command = [
            sys.executable,
            "-m",
            "benchmarks.batch",
            str(manifest),
            out,
            str(workers),
            engine,
            asked,
            str(nodes),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Graph2VidError(f"the run failed: {done.stderr.strip() or done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(
    manifest: Path, out: Path, workers: int, engine: str, options: Mapping[str, Any] | None = None, nodes: int = 1
) -> dict[str, Any]:
    """Run a batch here and now; return seconds and peak memory of the driver and of the largest worker.

    ``nodes``: of a Ray cluster, all on this machine.
    """
    from graph2vid.batch import RunOptions, run_batch

    # Workers are not waited for at the end, so that nobody would know how long they took: they become our children.
    adopts = engine == "local" and sys.platform == "linux"
    if adopts:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    began, before = time.perf_counter(), os.times()
    if engine == "ray":
        import ray
        from ray.cluster_utils import Cluster

        each = {"num_cpus": workers // nodes + 1, "object_store_memory": 256 << 20}
        if nodes == 1:
            ray.init(**each, include_dashboard=False, log_to_driver=False)
        else:
            cluster = Cluster(initialize_head=True, head_node_args=each | {"include_dashboard": False})
            for _ in range(nodes - 1):
                cluster.add_node(**each)
            ray.init(address=cluster.address, log_to_driver=False)
        ray.get(ray.remote(lambda: None).remote())
    started = time.perf_counter()
    with _watched() as peak:
        run_options = RunOptions(engine=engine, workers=workers)
        summary = run_batch(manifest, out / "out", options=run_options, row_options=options)
    seconds = time.perf_counter() - began
    if summary.failed or summary.done != summary.rows:
        raise Graph2VidError(f"{summary.failed} of {summary.rows} videos failed")
    if engine == "ray":
        ray.shutdown()
        if nodes > 1:
            cluster.shutdown()
    with suppress(ChildProcessError):  # no more of them
        while adopts:
            os.wait()
    return {
        "seconds": seconds,
        "start_seconds": started - began,
        "processor_seconds": sum(os.times()[:4]) - sum(before[:4]),
        "driver_processor_seconds": sum(os.times()[:2]) - sum(before[:2]),
        "driver_bytes": peak_bytes(),
        "worker_bytes": max(peak, default=0),
    }


@contextmanager
def _watched() -> Iterator[list[int]]:
    """Yield a list that grows by the peak memory of the processes below this one, every now and then."""
    seen: list[int] = []
    ending = threading.Event()

    def look() -> None:
        while not ending.wait(_LOOK_SECONDS):
            for child in _below("self"):
                with suppress(OSError):  # it has ended
                    lines = Path(f"/proc/{child}/status").read_text().splitlines()
                    seen.extend(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ending.set()
        thread.join()


def _below(process: str) -> list[str]:
    """Return the processes that a process started, and those that they did."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            found += task.read_text().split()
    return found + [grandchild for child in found for grandchild in _below(child)]


# -- tables --------------------------------------------------------------------------------------------------


def _tables(found: Sequence[dict[str, Any]]) -> tuple[Table, ...]:
    note = (
        f"From a Parquet manifest to Parquet data sets, check and start of the workers included; 9 steps, "
        f"{_CROSSTASK.clips} clips, float32, alignment and confidence, two workers."
    )
    rows = [
        (
            _WORDS[row["name"]],
            f"{row['videos']:,}",
            duration(row["seconds"]),
            "—" if row["seconds"] is None else f"{row['videos_per_second']:,.0f}",
            _remark(row),
        )
        for row in found
    ]
    return (table("Batches", note, ("what", "videos", "time", "videos/s", "beside"), rows),)


_WORDS = {
    "scores": "ready scores",
    "extended": "ready scores, repeats and durations, no confidences",
    "features": f"features of {WIDTH} dimensions",
    "memory": "memory",
    "ray": "ready scores, engine ray",
    "ray-many": "ready scores, engine ray",
    "ray-nodes": f"ready scores, engine ray, {max(NODES)} actors on {max(NODES)} nodes of one machine",
}


def _remark(row: dict[str, Any]) -> str:
    if row["seconds"] is None:
        return str(row["what"])
    if row["name"] == "scores":
        return (
            f"one worker {duration(row['one_worker_seconds'])}: {times(row['scaling'])}; "
            f"{duration(row['processor_seconds'] / row['videos'])} of processor time a video, "
            f"{row['driver_share']:.0%} of it the driver's"
        )
    if row["name"] == "memory":
        now, fewer = (
            " + ".join(f"{row[f'{who}_bytes{of}'] / 2**20:,.0f}" for who in ("driver", "worker"))
            for of in ("", "_of_fewer")
        )
        return f"peak {now} MiB (driver + worker); with {row['of_videos']:,} videos {fewer} MiB"
    if row["name"] == "extended":
        plain, sure = (times(row[name] / row["seconds"]) for name in ("plain_seconds", "sure_seconds"))
        return f"the plain model {duration(row['plain_seconds'])}: {plain}; with confidences {sure} the time"
    if row["name"] == "ray-nodes":
        parts = zip(row["nodes"], row["seconds_by_nodes"], row["driver_processor_seconds_by_nodes"], strict=True)
        told = [f"{nodes}: {duration(seconds)}, {duration(driver)}" for nodes, seconds, driver in parts]
        return f"by nodes, time without start and processor time of the driver with it: {'; '.join(told)}"
    if row["name"].startswith("ray"):
        return (
            f"{times(row['overhead'])} the time of local, {times(row['overhead_without_start'])} without its start "
            f"({duration(row['start_seconds'])}); largest worker {row['worker_bytes'] / 2**20:,.0f} MiB"
        )
    return ""


if __name__ == "__main__":
    manifest_, out_, workers_, engine_, asked_, nodes_ = sys.argv[1:]
    print(json.dumps(run(Path(manifest_), Path(out_), int(workers_), engine_, json.loads(asked_), int(nodes_))))
