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
    given = rows, *(random.normal(size=(count, 2, width)).astype(np.float32) for count in (dependents, entities))
    assert module is not None
    levels = [module.FeatureSums(tables, level)(*given) for level in range(len(module.encoder_levels()))]
    levels.append(feature_sums(tables)(*given))
    for number, expected in enumerate(FeatureSums(tables)(*given)):
        assert all(np.array_equal(levels[0][number], found[number]) for found in levels)
        np.testing.assert_allclose(levels[0][number], expected, rtol=1e-5, atol=1e-6 * width)


@needs_kernels
def test_what_does_not_fit_is_refused() -> None:
    assert module is not None
    tables = [np.zeros((3, 16), np.float32), np.zeros((2, 16), np.float32)]
    sums = module.FeatureSums(tables)
    ends = np.zeros((1, 2, 16), np.float32)
    found, met = sums(np.zeros((0, 2, 1), np.int64), ends[:0], ends)
    assert found.shape == (0, 1, 16) and met.shape == (2, 0, 1)
    for row in (2, -1):
        with pytest.raises(ValueError, match="no such row"):
            sums(np.array([[[0], [row]]]), ends, ends)
    with pytest.raises(ValueError, match="row of each table"):
        sums(np.zeros((1, 3, 1), np.int64), ends, ends)
    with pytest.raises(ValueError, match="both ends"):
        sums(np.zeros((1, 2, 5), np.int64), ends, ends)
    with pytest.raises(ValueError, match="different widths"):
        module.FeatureSums([tables[0], np.zeros((2, 8), np.float32)])
    with pytest.raises(ValueError, match="multiple of 8"):
        module.FeatureSums([np.zeros((3, 12), np.float32)])


def test_a_width_that_kernels_do_not_know_is_left_to_numpy() -> None:
    assert isinstance(feature_sums([np.zeros((3, 12), np.float32)]), FeatureSums)
