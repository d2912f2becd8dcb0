"""Rows are read by their places, and cut into batches, however a file is laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import make_rows, pa, pq, write_parquet
from graph2vid.batch import RunOptions
from graph2vid.batch.batches import BATCH_ROWS, Job, RowReader, stretches, tables
from graph2vid.batch.settings import Context
from graph2vid.errors import FormatError

ROWS = 900


@pytest.fixture(scope="module", params=[1, 7, 100, 300, ROWS])
def laid_out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose row groups have so many rows."""
    path: Path = tmp_path_factory.mktemp("rows") / f"{request.param}.parquet"
    pq.write_table(pa.table({"id": [f"v{at}" for at in range(ROWS)]}), path, row_group_size=request.param)
    return path


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=40), min_size=1, max_size=6))
def test_rows_are_those_at_the_places(laid_out: Path, asked: list[set[int]]) -> None:
    reader = RowReader(str(laid_out))
    for places in map(sorted, asked):
        assert reader.read(places).column("id").to_pylist() == [f"v{at}" for at in places]


def test_tables_hold_all_rows(laid_out: Path) -> None:
    assert pa.concat_tables(tables(laid_out)).column("id").to_pylist() == [f"v{at}" for at in range(ROWS)]


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    pq.write_table(pa.table({"id": [f"v{at}" for at in range(5000)]}), path)
    data = bytearray(path.read_bytes())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match="not a readable Parquet file"):
        RowReader(str(path))
    data[100:2000] = bytes(1900)
    path.write_bytes(data)
    with pytest.raises(FormatError, match="is damaged"):
        RowReader(str(path)).read([0, 4000])


@pytest.mark.parametrize("group", [10, 64, 500, 5000])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_row_that_is_left_is_in_one_batch(group: int, workers: int, tmp_path: Path) -> None:
    rows = make_rows(3000)
    path = write_parquet(tmp_path / "m.parquet", rows, row_group_size=group)
    done = [row["id"] for row in rows[::7]]
    context = Context(str(tmp_path), str(tmp_path))
    kinds: Any = {"arrays": len(rows), "captions": 0, "speech": 0}
    found = list(stretches(Job(path, None, pa.array(done), 0, kinds, context, RunOptions()), workers))
    places = np.concatenate([batch.places for stretch in found for batch in stretch])
    assert places.tolist() == [at for at in range(3000) if at % 7]
    assert max(len(batch) for stretch in found for batch in stretch) <= BATCH_ROWS["arrays"]
    assert len(found) >= 2 * workers
    if group <= 64:  # nobody reads a row group of which another reads a part
        groups = [{int(place) // group for batch in stretch for place in batch.places} for stretch in found]
        assert sum(map(len, groups)) == len(set().union(*groups))
