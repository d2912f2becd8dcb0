"""Matrices in few signs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from graph2vid.grounding.quantised import pack, unpack

MATRICES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e4, 1e4, width=32) | st.sampled_from([np.inf, -np.inf]),
)


@given(MATRICES)
def test_what_is_packed_comes_back_almost(matrix: Any) -> None:
    packed = json.loads(json.dumps(pack(matrix), allow_nan=False))
    again = unpack(packed)
    assert pack(again) == packed  # nothing more is lost
    low, high = packed["range"]
    assert again.shape == matrix.shape
    np.testing.assert_allclose(again, np.clip(matrix, low, high), atol=(high - low) / 509 + 1e-12)


@pytest.mark.parametrize("ends", [(-1.7e308, 1.7e308), (0.0, 5e-324), (1e9, np.nextafter(1e9, 2e9)), (-np.inf, np.inf)])
def test_no_range_is_too_large_or_too_small(ends: tuple[float, float]) -> None:
    again = unpack(json.loads(json.dumps(pack(np.array([ends])), allow_nan=False)))
    assert np.isfinite(again).all() and again.min() >= ends[0] and again.max() <= ends[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [1]}, "'shape' is two whole numbers"),
        ({"shape": [True, 2]}, "'shape' is two whole numbers"),
        ({"range": [0, "1"]}, "'range' is two numbers"),
        ({"range": [2.0, 1.0]}, "the lower first"),
        ({"range": [0.0, float("inf")]}, "finite"),
        ({"bytes": "a?"}, "base64"),
        ({"bytes": None}, "base64"),
        ({"shape": [2, 2]}, "4 bytes"),
    ],
)
def test_damaged_ones_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack(pack(np.array([[0.0, 1.0]])) | change)


def test_other_things_are_refused() -> None:
    with pytest.raises(ValueError, match="an object"):
        unpack([1])
