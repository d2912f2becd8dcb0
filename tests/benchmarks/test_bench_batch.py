"""``bench batch`` measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.batch import bench_batch, write_manifest
from graph2vid.alignment import backends

pytest.importorskip("pyarrow", reason="needs graph2vid[batch]")
needs_kernels = pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not installed")


@needs_kernels
def test_memory_and_features_of_a_few_videos() -> None:
    report = bench_batch(["features", "memory"], videos=30)
    features, memory = report.cases
    assert (features["videos"], memory["videos"]) == (3, 300)
    assert memory["worker_bytes"] > 10 << 20 and memory["driver_bytes"] > 10 << 20
    assert "features of 512 dimensions" in report.to_markdown() and "MiB (driver + worker)" in report.to_markdown()


def test_the_manifest_is_one(tmp_path: Path) -> None:
    from graph2vid.batch import check_manifest

    for width in (None, 16):
        found = check_manifest(write_manifest(tmp_path / f"{width}.parquet", 7, width))
        assert len(found) == 7 and not found.problems


@needs_kernels
def test_the_extended_model_of_a_few_videos() -> None:
    report = bench_batch(["extended"], videos=20)
    assert report.cases[0]["videos"] == 10 and report.cases[0]["sure_seconds"] > 0
    assert "repeats and durations" in report.to_markdown()
