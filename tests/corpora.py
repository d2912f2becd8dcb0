"""Small corpora for the tests of batches: manifests, and what goes wrong on purpose in worker processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.flow import FlowGraph

pa: Any = pytest.importorskip("pyarrow", reason="needs graph2vid[batch]")
pq: Any = pytest.importorskip("pyarrow.parquet")

FLOWS = {
    "salad.flow": FlowGraph.from_edges(["wash", "cut", "boil", "mix"], [(0, 1), (1, 3), (2, 3)]),
    "tea.flow": FlowGraph.from_edges(["boil", "warm the pot", "pour"], [(0, 2), (1, 2)]),
}

# Runs at the start of every Python process that finds it: rows do what their ids say.
_FAULTS = """
import os, time
try:
    import graph2vid.batch.stages as stages
except ImportError:
    pass
else:
    usual = stages.STAGES["align"]

    def align(items, context):
        for item in items:
            name = item.row.id
            if name.startswith("endless"):
                while True:
                    pass
            if name.startswith("crash"):
                os.kill(os.getpid(), 11)
            if name.startswith("slow"):
                time.sleep(0.002)
        usual(items, context)

    stages.STAGES["align"] = align
"""


def plant_faults(folder: Path) -> dict[str, str]:
    """Return the environment in which rows do what their ids say: endless…, crash…, slow…."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_FAULTS, encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def scores(seed: int, steps: int, clips: int | None = None) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    length = int(random.integers(steps, steps + 30)) if clips is None else clips
    return random.normal(size=(steps, length)).astype(np.float32)


def save_flows(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, flow in FLOWS.items():
        flow.save(folder / name)


def make_rows(count: int, prefix: str = "v") -> list[dict[str, Any]]:
    """Return rows of two procedures in turns, with score matrices of many lengths."""
    names = list(FLOWS)
    return [
        {
            "id": f"{prefix}{at:04d}",
            "procedure": names[at % 2],
            "scores": scores(at, len(FLOWS[names[at % 2]])),
        }
        for at in range(count)
    ]


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], **options: Any) -> Path:
    """Write a manifest that holds its arrays, beside the flow graphs."""
    save_flows(path.parent)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        matrices = any(isinstance(value, np.ndarray) for value in values)
        kind = pa.list_(pa.list_(pa.float32())) if matrices else None
        columns[name] = pa.array(
            [None if value is None else list(value) if matrices else value for value in values], kind
        )
    pq.write_table(pa.table(columns), path, **options)
    return path


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a manifest whose arrays are lists of numbers within it, beside the flow graphs."""
    save_flows(path.parent)
    lines = [
        json.dumps({name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()})
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(out: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a data set of a run."""
    found: list[dict[str, Any]] = pq.read_table(out / name).to_pylist()
    return found


def data_bytes(out: Path) -> dict[str, bytes]:
    """Return the bytes of the data sets of a run."""
    return {
        f"{name}/{path.name}": path.read_bytes()
        for name in ("videos", "segments")
        for path in sorted((out / name).iterdir())
    }


def children(parent: int) -> list[int]:
    """Return the processes that a process started, and those that they did."""
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if int(lines["PPid"]) == parent and "Z" not in lines["State"]:
            found += [int(lines["Pid"]), *children(int(lines["Pid"]))]
    return found


def kill(process: int) -> None:
    """End a process as hard as can be, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
