"""Evidence handed in as arrays and files: what is read, and what is refused and how."""

from __future__ import annotations

import io
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.evidence import cosine_similarity, costs_from_arrays, read_array


def test_cosine_by_hand() -> None:
    found = cosine_similarity([[3.0, 4.0], [0.0, 0.0]], [[6.0, 8.0], [-3.0, -4.0], [4.0, -3.0]])
    np.testing.assert_allclose(found, [[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


def test_cosine_of_very_long_and_very_short_vectors() -> None:
    found = cosine_similarity([[1e200, 1e200]], [[1e-200, 1e-200], [1e-200, -1e-200]])
    np.testing.assert_allclose(found, [[1.0, 0.0]], atol=1e-15)


def test_embeddings_have_their_own_temperature_and_dtype() -> None:
    random = np.random.default_rng(1)
    steps = random.normal(size=(3, 8)).astype(np.float32)
    clips = random.normal(size=(5, 8)).astype(np.float32)
    costs = costs_from_arrays(steps=steps, clips=clips)
    assert costs.options["temperature"] == 0.1 and costs.match.dtype == np.float32
    by_hand = costs_from_arrays(scores=cosine_similarity(steps, clips), temperature=0.1)
    np.testing.assert_array_equal(costs.match, by_hand.match)


def test_steps_with_one_embedding_are_one_step() -> None:
    random = np.random.default_rng(2)
    steps, clips = random.normal(size=(3, 64)), random.normal(size=(7, 64))
    once = costs_from_arrays(steps=steps, clips=clips)
    again = costs_from_arrays(steps=steps[[0, 1, 2, 1]], clips=clips)
    np.testing.assert_allclose(again.match, once.match[[0, 1, 2, 1]], rtol=1e-12)
    np.testing.assert_allclose(again.drop, once.drop, rtol=1e-12)


def test_a_background_embedding() -> None:
    steps, clips = np.eye(3), np.array([[1.0, 0, 0], [0, 0, 1.0]])
    costs = costs_from_arrays(
        steps=steps[:2], clips=clips, match="raw", temperature=1.0, drop=("prototype", [0.0, 0.0, 5.0])
    )
    np.testing.assert_allclose(costs.drop, [0.0, -1.0])
    with pytest.raises(InputError, match=r"one background embedding of shape \(3,\).*not \(2,\)"):
        costs_from_arrays(steps=steps, clips=clips, drop=("prototype", [0.0, 1.0]))


def test_log_probabilities_are_costs_and_zero_probability_forbids() -> None:
    with np.errstate(divide="ignore"):
        costs = costs_from_arrays(log_probabilities=np.log([[0.5, 0.0], [0.5, 1.0]]), drop="percentile")
    np.testing.assert_allclose(costs.match, [[math.log(2), math.inf], [math.log(2), 0.0]])
    np.testing.assert_allclose(costs.drop, np.percentile([math.log(2), math.log(2), 0.0], 30))
    for match in ("likelihood", "likelihood_bg"):
        for drop in ("entropy", "percentile", math.inf):
            again = costs_from_arrays(log_probabilities=[[-math.inf, -1.0], [-math.inf, -1.5]], match=match, drop=drop)
            assert np.isinf(again.match[:, 0]).all() and np.isfinite(again.match[:, 1]).all()
    with pytest.raises(InputError, match="every match cost is infinite"):
        costs_from_arrays(log_probabilities=[[-math.inf]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"scores": [[0.0, math.nan]]},
            "scores is nan at step 0, clip 1 .counted from 0.: scores must be finite",
        ),
        ({"scores": [[0.0, 1.0], [-math.inf, -math.inf]]}, "scores is -inf at step 1, clip 0.*2 such values"),
        ({"scores": [[math.inf]]}, "scores is inf at step 0, clip 0"),
        (
            {"log_probabilities": [[0.5]]},
            "log_probabilities is 0.5 at step 0, clip 0.*hand other numbers in as scores",
        ),
        ({"log_probabilities": [[math.nan]]}, "log_probabilities is nan at step 0, clip 0"),
        ({"scores": [1.0, 2.0]}, r"scores must have two axes \[steps, clips\], not shape \(2,\)"),
        ({"scores": np.zeros((3, 0))}, r"shape \(3, 0\): there are no clips \(axis 1 is empty\)"),
        ({"scores": np.zeros((0, 3))}, r"there are no steps \(axis 0 is empty\)"),
        ({"scores": [["a"]]}, "scores must hold real numbers"),
        ({"scores": [[1j]]}, "scores must hold real numbers, not complex128"),
        ({"scores": [[1.0], [1.0, 2.0]]}, "scores cannot be read as an array"),
        (
            {"steps": np.ones((2, 3)), "clips": np.ones((4, 5))},
            r"\(2, 3\) and clips \(4, 5\).*axis 1.*3 is not 5",
        ),
        (
            {"steps": np.ones((2, 3)), "clips": np.full((4, 3), math.nan)},
            "clips is nan at clip 0, dimension 0",
        ),
        ({"steps": np.ones((2, 3))}, "steps need clips beside them"),
        ({"clips": np.ones((2, 3))}, "clips need steps beside them"),
        ({}, "give one of scores, clips and steps, or log_probabilities; found nothing"),
        ({"scores": [[1.0]], "clips": [[1.0]]}, "found scores, and clips and steps"),
    ],
)
def test_bad_arrays_are_named(arrays: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        costs_from_arrays(**arrays)  # type: ignore[arg-type]


def test_the_number_of_steps_is_checked_and_a_transposed_matrix_recognised() -> None:
    with pytest.raises(InputError, match=r"scores has shape \(100, 5\).*5 steps: shape \(5, clips\).*axis 0.*100.*\.T"):
        costs_from_arrays(scores=np.zeros((100, 5)), n_steps=5)
    with pytest.raises(InputError) as caught:
        costs_from_arrays(scores=np.zeros((4, 7)), n_steps=5)
    assert "transposed" not in str(caught.value)
    with pytest.raises(InputError, match=r"steps has shape \(4, 7\), but the flow graph has 1 step:"):
        costs_from_arrays(steps=np.zeros((4, 7)), clips=np.zeros((3, 7)), n_steps=1)


def test_scores_beyond_the_range_of_their_type_are_refused() -> None:
    with pytest.raises(InputError, match="divided by temperature 1e-05 it exceeds the range of float32"):
        costs_from_arrays(scores=np.array([[3e38, 0.0]], dtype=np.float32), temperature=1e-5)
    with pytest.raises(InputError, match="match costs exceed the range of float32"):
        costs_from_arrays(scores=np.array([[3e38], [-3e38]], dtype=np.float32), drop=1.0)


def test_reading_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), [[0, 1, 2], [3, 4, 5]])
    np.save(tmp_path / "f.npy", np.asfortranarray(np.eye(3, dtype=np.float16)))
    np.testing.assert_array_equal(read_array(tmp_path / "f.npy"), np.eye(3))


def test_files_that_are_not_arrays_are_refused_by_name(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npy"
    np.save(whole, np.arange(100.0))
    data = whole.read_bytes()
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (1 << 45, 3)})
    np.savez(tmp_path / "packed.npz", a=np.eye(2))
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    files = {
        "empty.npy": b"",
        "text.txt": b"not an array\n",
        "short.npy": data[:-1],
        "shorter.npy": data[:9],
        "shortest.npy": data[:6],
        "damaged.npy": data[:20] + b"\xff" * 20 + data[40:],
        "unclosed.npy": data.replace(b"False,", b"False]", 1),
        "newer.npy": data[:6] + b"\x09\x00" + data[8:],
        "huge.npy": huge.getvalue() + bytes(64),
        "packed.npz": (tmp_path / "packed.npz").read_bytes(),
        "objects.npy": (tmp_path / "objects.npy").read_bytes(),
        "text.npy": (tmp_path / "text.npy").read_bytes(),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(FormatError) as caught:
            read_array(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(Graph2VidError, match=r"cannot read .*missing.npy: No such file"):
        read_array(tmp_path / "missing.npy")
    with pytest.raises(Graph2VidError, match="cannot read"):
        read_array(tmp_path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_header_longer_than_the_file_takes_no_memory(tmp_path: Path, version: int) -> None:
    length = b"\xff" * (2 if version == 1 else 4)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + b"{'descr': ")
    tracemalloc.start()
    with pytest.raises(FormatError, match="shorter than its header says"):
        read_array(tmp_path / "a.npy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_long_header_is_quoted_in_short(tmp_path: Path) -> None:
    header = b"'" + b"x" * 5000
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(FormatError, match="is not a readable") as caught:
        read_array(tmp_path / "a.npy")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))
