"""Sums of rows of tables: the kernels on every instruction set, and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from graph2vid.text.learned.feature_sums import FeatureSums, feature_sums
from graph2vid.text.learned.integer_layers import native

module = native()
needs_kernels = pytest.mark.skipif(module is None, reason="the kernels are not built")


@needs_kernels
@pytest.mark.parametrize(("sizes", "width", "dependents", "entities"), [((1,), 8, 1, 1), ((5, 300, 2), 128, 3, 11)])
def test_kernels_give_what_numpy_gives(sizes: tuple[int, ...], width: int, dependents: int, entities: int) -> None:
    random = np.random.default_rng([width, entities])
    tables = [random.normal(size=(size, width), scale=3).astype(np.float32) for size in sizes]
    rows = np.stack([random.integers(size, size=(dependents, entities)) for size in sizes], axis=1)
    assert module is not None
    found = [module.FeatureSums(tables, level)(rows) for level in range(len(module.encoder_levels()))]
    assert all(np.array_equal(found[0], other) for other in found)
    np.testing.assert_allclose(found[0], FeatureSums(tables)(rows), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[0], feature_sums(tables)(rows))


@needs_kernels
def test_what_does_not_fit_is_refused() -> None:
    assert module is not None
    tables = [np.zeros((3, 16), np.float32), np.zeros((2, 16), np.float32)]
    sums = module.FeatureSums(tables)
    assert sums(np.zeros((0, 2, 5), np.int64)).shape == (0, 5, 16)
    for row in (2, -1):
        with pytest.raises(ValueError, match="no such row"):
            sums(np.array([[[0], [row]]]))
    with pytest.raises(ValueError, match="row of each table"):
        sums(np.zeros((1, 3, 5), np.int64))
    with pytest.raises(ValueError, match="different widths"):
        module.FeatureSums([tables[0], np.zeros((2, 8), np.float32)])
    with pytest.raises(ValueError, match="multiple of 8"):
        module.FeatureSums([np.zeros((3, 12), np.float32)])


def test_a_width_that_kernels_do_not_know_is_left_to_numpy() -> None:
    assert isinstance(feature_sums([np.zeros((3, 12), np.float32)]), FeatureSums)
