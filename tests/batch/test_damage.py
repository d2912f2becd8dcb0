"""Parts with a flipped bit, cut short or removed: their rows are done again, and nothing of them is published."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from corpora import data_bytes, make_rows, scores, write_parquet
from graph2vid.batch import RunOptions, Summary, check_manifest, run_batch
from graph2vid.batch import driver as run_module
from graph2vid.batch import parts as parts_module
from graph2vid.batch.parts import LostRowsError, Parts
from graph2vid.errors import FormatError, Graph2VidError

ROWS = 60
FLIPS = [40, pytest.param(2000, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A manifest, and the folder of a run of several parts; two rows failed."""
    folder = tmp_path_factory.mktemp("sound")
    rows = make_rows(ROWS)
    rows[7]["scores"], rows[31]["scores"] = scores(7, 3, clips=2), scores(31, 3, clips=2)
    manifest = write_parquet(folder / "m.parquet", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "_PART_ROWS", 10)
        patch.setattr("graph2vid.batch.batches.BATCH_ROWS", {"arrays": 10, "captions": 1, "speech": 1})
        run_batch(manifest, folder / "out", options=RunOptions(workers=1))
    assert len(Parts(folder / "out").files()) == 6
    return manifest, folder / "out"


def resume(manifest: Path, out: Path) -> Summary:
    return run_batch(manifest, out, options=RunOptions(workers=1, resume=True))


def flip(path: Path, bit: int) -> bytes:
    """Flip one bit of a file; return what it held."""
    before = path.read_bytes()
    data = bytearray(before)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return before


@pytest.mark.parametrize("flips", FLIPS)
def test_no_flipped_bit_is_believed(flips: int, sound: tuple[Path, Path], tmp_path: Path) -> None:
    """Every flip is seen before pyarrow opens the file, by whoever reads parts; the other parts are whole."""
    _, out = sound
    shutil.copytree(out, tmp_path / "out")
    parts = Parts(tmp_path / "out")
    wanted = parts.known().select(["id", "digest"])
    held = {path: set(parts_module.read_part(path).column("id").to_pylist()) for path in parts.files()}  # type: ignore[union-attr]
    chance = random.Random(0)
    for _ in range(flips):
        path = chance.choice(parts.files())
        before = flip(path, chance.randrange(8 * path.stat().st_size))
        assert parts_module.read_part(path) is None
        assert set(parts.known().column("id").to_pylist()) == set().union(*held.values()) - held[path]
        with pytest.raises(LostRowsError):
            parts.publish(wanted)
        assert data_bytes(parts.out) == data_bytes(out)
        path.write_bytes(before)
    assert parts.discard_damaged() == 0


@pytest.mark.parametrize("flips", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_rows_of_a_flipped_part_are_done_again(flips: int, sound: tuple[Path, Path], tmp_path: Path) -> None:
    manifest, out = sound
    shutil.copytree(out, tmp_path / "out")
    chance = random.Random(1)
    for _ in range(flips):
        path = chance.choice(Parts(tmp_path / "out").files())
        lost = len(parts_module.read_part(path))  # type: ignore[arg-type]
        flip(path, chance.randrange(8 * path.stat().st_size))
        with pytest.warns(UserWarning, match="1 part damaged, or of an older version: their rows are done again"):
            summary = resume(manifest, tmp_path / "out")
        assert (summary.damaged, summary.skipped, summary.done + summary.failed) == (1, ROWS - lost, lost)
        assert data_bytes(tmp_path / "out") == data_bytes(out)
        assert resume(manifest, tmp_path / "out").damaged == 0


def test_parts_cut_short_emptied_or_removed(sound: tuple[Path, Path], tmp_path: Path) -> None:
    manifest, out = sound
    shutil.copytree(out, tmp_path / "out")
    cut, empty, gone, *_ = Parts(tmp_path / "out").files()
    cut.write_bytes(cut.read_bytes()[:-1])
    empty.write_bytes(b"")
    gone.unlink()
    with pytest.warns(UserWarning, match="2 parts damaged"):
        summary = resume(manifest, tmp_path / "out")
    assert (summary.damaged, summary.skipped) == (2, 30)
    assert data_bytes(tmp_path / "out") == data_bytes(out)


def test_a_part_damaged_while_the_run_goes_on(
    sound: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was sound when the run began is looked at again when it is published."""
    manifest, out = sound
    usual, flipped = Parts.publish, []

    def publish(self: Parts, wanted: object) -> None:
        if not flipped:
            flipped.append(self.files()[0])
            flip(flipped[0], 999)
        usual(self, wanted)

    monkeypatch.setattr(Parts, "publish", publish)
    with pytest.warns(UserWarning, match="1 part damaged"):
        summary = run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1))
    assert flipped and summary.damaged == 1
    assert data_bytes(tmp_path / "out") == data_bytes(out)


def test_a_disk_that_keeps_nothing(sound: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, _ = sound
    usual = Parts.commit

    def commit(self: Parts, table: object) -> Path | None:
        path = usual(self, table)
        if path is not None:
            flip(path, 80)
        return path

    monkeypatch.setattr(Parts, "commit", commit)
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(Graph2VidError, match=r"nothing is published: check the disk, then --resume"),
    ):
        run_batch(manifest, tmp_path / "out", options=RunOptions(workers=1))
    assert not (tmp_path / "out" / "videos").exists()


def test_parts_of_an_older_version_are_done_again(sound: tuple[Path, Path], tmp_path: Path) -> None:
    manifest, out = sound
    shutil.copytree(out, tmp_path / "out")
    for path in Parts(tmp_path / "out").files():
        path.write_bytes(path.read_bytes()[:-20])  # as they were without a digest
    with pytest.warns(UserWarning, match="6 parts damaged, or of an older version"):
        assert resume(manifest, tmp_path / "out").done == ROWS - 2
    assert data_bytes(tmp_path / "out") == data_bytes(out)


def test_published_files_carry_checksums(sound: tuple[Path, Path], tmp_path: Path) -> None:
    """A reader that looks at the checksums of pages sees a value that is not what was published."""
    pq = pytest.importorskip("pyarrow.parquet")
    _, out = sound
    (path,) = (out / "videos").iterdir()
    shutil.copy(path, tmp_path / "v.parquet")
    meta = pq.ParquetFile(path).metadata.row_group(0).column(0)
    flip(tmp_path / "v.parquet", 8 * (meta.data_page_offset + meta.total_compressed_size - 5))
    with pytest.raises(OSError, match=r"(?i)checksum|crc"):
        pq.read_table(tmp_path / "v.parquet", page_checksum_verification=True)


# -- manifests -----------------------------------------------------------------------------------------------


def test_a_manifest_whose_reader_crashes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the process of a worker; the driver lives, and says what happened."""
    folder = tmp_path / "faults"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import os, sys\n"
        "import graph2vid.batch.manifest as manifest\n"
        "manifest.read_manifest = lambda *_: os.kill(os.getpid(), 11)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    manifest = write_parquet(tmp_path / "m.parquet", make_rows(3))
    with pytest.raises(FormatError, match=r"m.parquet is damaged, or too large: its worker process ended \(SIGSEGV\)"):
        check_manifest(manifest)
    with pytest.raises(FormatError, match="SIGSEGV"):
        run_batch(manifest, tmp_path / "out")


@pytest.mark.parametrize("flips", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_damaged_manifests_end_in_an_answer(flips: int, tmp_path: Path) -> None:
    """A flipped bit of somebody else's file cannot be told from what was meant, but it ends no driver."""
    manifest = write_parquet(tmp_path / "m.parquet", make_rows(20))
    chance = random.Random(2)
    for _ in range(flips):
        before = flip(manifest, chance.randrange(8 * manifest.stat().st_size))
        try:
            found = check_manifest(manifest)
            assert len(found) >= 1
        except Graph2VidError as error:
            assert str(manifest) in str(error)
        manifest.write_bytes(before)
    assert not check_manifest(manifest).problems
