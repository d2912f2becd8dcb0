"""The engine ray: the results of the engine local, also when an actor or a machine is lost."""

from __future__ import annotations

import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from corpora import children, data_bytes, kill, make_rows, plant_faults, read, scores, write_jsonl, write_parquet
from graph2vid.batch import RunOptions, run_batch
from graph2vid.batch.parts import Parts
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.sample.narrated import NarratedFiles

ray: Any = pytest.importorskip("ray")
from ray.util.annotations import RayDeprecationWarning  # noqa: E402

STORE = 150 << 20
ROWS = 1500


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In worker processes, rows do what their ids say; also in those of Ray, which are started after this."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in plant_faults(tmp_path_factory.mktemp("faults")).items():
            patch.setenv(name, value)
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield


@pytest.fixture(scope="module")
def cluster(faults: None) -> Iterator[None]:
    """A Ray cluster of this machine alone, small."""
    ray.init(num_cpus=3, object_store_memory=STORE, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def calm(faults: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """A manifest, and its results by the engine local."""
    folder = tmp_path_factory.mktemp("calm")
    rows = make_rows(ROWS, "slow")
    rows[40]["scores"] = scores(40, 4, clips=2)
    manifest = write_parquet(folder / "m.parquet", rows)
    run_batch(manifest, folder / "out", options=RunOptions(workers=1))
    return manifest, data_bytes(folder / "out")


def actors() -> list[int]:
    """Return the processes of actors that take rows through the stages."""
    found = []
    for process in children(os.getpid()):
        try:
            title = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::") and b"StageActor" in title:
            found.append(process)
    return found


@contextmanager
def meanwhile(action: Callable[[], bool]) -> Iterator[None]:
    """Try something every now and then, until it says that it is done."""
    ending = threading.Event()

    def attempt() -> None:
        while not ending.wait(0.1) and not action():
            pass

    thread = threading.Thread(target=attempt)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_an_actor_is_killed(cluster: None, calm: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    manifest, wanted = calm
    killed: list[int] = []

    def kill_one() -> bool:
        if found := actors():
            time.sleep(1.0)  # into its work
            killed.append(found[0])
            kill(found[0])
        return bool(killed)

    with meanwhile(kill_one), warnings.catch_warnings():
        warnings.simplefilter("error", RayDeprecationWarning)
        summary = run_batch(manifest, tmp_path / "out", options=RunOptions(engine="ray", workers=2))
    assert killed
    assert (summary.done, summary.failed) == (ROWS - 1, 1)
    assert data_bytes(tmp_path / "out") == wanted


@pytest.mark.slow
def test_a_run_begun_here_goes_on_there(cluster: None, calm: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    manifest, wanted = calm
    shutil.copytree(manifest.parent / "out", tmp_path / "out")
    for path in Parts(tmp_path / "out").files()[::2]:
        path.unlink()
    left = len(Parts(tmp_path / "out").known())
    summary = run_batch(manifest, tmp_path / "out", options=RunOptions(engine="ray", workers=1, resume=True))
    assert 0 < summary.skipped == left < ROWS
    assert data_bytes(tmp_path / "out") == wanted


@pytest.mark.slow
def test_stages_of_narration_on_actors_of_their_own(cluster: None, tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    files = NarratedFiles()
    rows = [
        {"id": f"v{at}", "procedure": str(files.flow), "captions": str(files.captions), "duration": 80 + at}
        for at in range(5)
    ]
    rows.append({"id": "endless", "procedure": str(files.flow), "captions": str(files.captions)})
    manifest = write_jsonl(tmp_path / "m.jsonl", rows)
    for engine in ("local", "ray"):
        run_batch(manifest, tmp_path / engine, options=RunOptions(engine=engine, workers=1, row_seconds=3.0))
    assert data_bytes(tmp_path / "ray") == data_bytes(tmp_path / "local")
    assert [row["error"] for row in read(tmp_path / "ray", "videos")] == [
        "took longer than the limit of 3 s",
        *[None] * 5,
    ]


def test_gpus_that_are_not_there_are_not_waited_for(cluster: None, tmp_path: Path) -> None:
    files = NarratedFiles()
    rows = [{"id": "v", "procedure": str(files.flow), "captions": str(files.captions)}]
    manifest = write_jsonl(tmp_path / "m.jsonl", rows)
    with pytest.raises(InputError, match=r"--gpus\), but the Ray cluster has none: leave --gpus out"):
        run_batch(manifest, tmp_path / "out", options=RunOptions(engine="ray", workers=1, gpus=0.5))


@pytest.mark.slow
def test_stop_at_the_first_that_fails(cluster: None, tmp_path: Path) -> None:
    rows = make_rows(20)
    rows[11]["scores"] = scores(11, 3, clips=2)
    manifest = write_parquet(tmp_path / "m.parquet", rows)
    with pytest.raises(Graph2VidError, match=r"^stopped at row 'v0011': no alignment is possible.*--resume goes on\)$"):
        run_batch(manifest, tmp_path / "out", options=RunOptions(engine="ray", workers=1, on_error="stop"))


@pytest.mark.slow
def test_a_machine_is_lost(calm: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    manifest, wanted = calm
    ray.shutdown()
    small = {"num_cpus": 2, "object_store_memory": STORE}
    machines = Cluster(initialize_head=True, head_node_args=small | {"include_dashboard": False})
    try:
        second = machines.add_node(**small)
        machines.wait_for_nodes()
        out = tmp_path / "out"
        lost: list[Any] = []

        def lose() -> bool:
            if len(actors()) >= 2:
                time.sleep(1.0)
                machines.remove_node(second, allow_graceful=False)
                lost.append(second)
            return bool(lost)

        ray.init(address=machines.address, log_to_driver=False, logging_level="ERROR")
        with meanwhile(lose):
            summary = run_batch(manifest, out, options=RunOptions(engine="ray", workers=3))
        assert lost
        assert (summary.done, summary.failed) == (ROWS - 1, 1)
        assert data_bytes(out) == wanted
    finally:
        ray.shutdown()
        machines.shutdown()


@pytest.mark.slow
def test_a_cluster_by_its_address(calm: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    manifest, wanted = calm
    ray.shutdown()
    machines = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 3, "object_store_memory": STORE, "include_dashboard": False}
    )
    try:
        options = RunOptions(engine="ray", workers=1, address=machines.address)
        run_batch(manifest, tmp_path / "out", options=options)
        assert data_bytes(tmp_path / "out") == wanted
        assert not ray.is_initialized()
    finally:
        machines.shutdown()


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def absent(**_: Any) -> None:
        raise ConnectionError("nobody answers")

    monkeypatch.setattr(ray, "init", absent)
    manifest = write_parquet(tmp_path / "m.parquet", make_rows(3))
    with pytest.raises(Graph2VidError, match="cannot use the Ray cluster at nowhere:1: nobody answers"):
        run_batch(manifest, tmp_path / "out", options=RunOptions(engine="ray", address="nowhere:1"))
