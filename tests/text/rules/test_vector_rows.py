"""Rows of word vectors, looked up in the packed file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2vid.text.rules import dependency_parser as models
from graph2vid.text.rules.dependency_parser import language_model
from graph2vid.text.rules.vector_rows import VectorRows

srsly = pytest.importorskip("srsly", reason="the extra 'text' is not installed")
get_string_id = pytest.importorskip("spacy.strings", reason="the extra 'text' is not installed").get_string_id


@given(st.dictionaries(st.text() | st.sampled_from(("prep", "det", "X")), st.integers(0, 2**32 - 1)))
def test_rows_are_those_of_the_unpacked_file(rows_of: dict[str, int]) -> None:
    rows = {get_string_id(word): row for word, row in rows_of.items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "key2row"
        srsly.write_msgpack(path, rows)
        found = VectorRows(path)
        assert {key: found[key] for key in rows} == rows
        absent = get_string_id("mizzenmast")
        assert found.get(absent, -1) == rows.get(absent, -1)
        assert dict(found) == rows


def test_all_words_of_the_model_have_their_rows() -> None:
    light, whole = language_model(), language_model(models._find())
    if not isinstance(light.vocab.vectors.key2row, VectorRows):
        pytest.skip("a model that is read by spaCy alone")
    rows = whole.vocab.vectors.key2row
    assert all(light.vocab.vectors.key2row[key] == row for key, row in rows.items())
    assert (light.vocab.vectors.data == whole.vocab.vectors.data).all()


def test_a_release_that_keeps_vectors_otherwise_reads_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> VectorRows:
        raise TypeError(path)

    monkeypatch.setattr(models, "VectorRows", refuse)
    vectors = models.language_model.__wrapped__().vocab.vectors
    assert isinstance(vectors.key2row, dict)
    assert vectors.find(key="flour") == language_model().vocab.vectors.find(key="flour") >= 0
