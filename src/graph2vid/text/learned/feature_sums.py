"""What stands for the features of pairs: sums of rows of tables, and what meets them; by kernels or in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graph2vid._transformer import Floats, gelu_tanh
from graph2vid.text.learned import integer_layers

Rows: TypeAlias = npt.NDArray[np.int64]
Sums: TypeAlias = Callable[[Rows, Floats, Floats], tuple[Floats, Floats]]
_LANES = 8


class FeatureSums:
    """Sums of rows of tables [rows, width], one row of each, through the GELU: in NumPy."""

    def __init__(self, tables: Sequence[Floats]) -> None:
        self._tables = tables

    def __call__(self, rows: Rows, dependent: Floats, head: Floats) -> tuple[Floats, Floats]:
        """Return what rows [dependents, tables, entities] give, and its products with both ends of the pairs.

        Parameters
        ----------
        rows : array of int, shape (dependents, tables, entities)
        dependent, head : array, shape (dependents, 2, width) and (entities, 2, width)

        Returns
        -------
        found : array, shape (dependents, entities, width)
        met : array, shape (2, dependents, entities)
        """
        found = np.zeros((len(rows), rows.shape[2], self._tables[0].shape[1]), dtype=np.float32)
        looked_up = np.empty_like(found)
        for number, table in enumerate(self._tables):
            # No row is outside; to check it takes a copy.
            found += table.take(rows[:, number], axis=0, out=looked_up, mode="clip")
        found = gelu_tanh(found)
        met: Floats = np.matmul(found, dependent.swapaxes(1, 2))
        met += np.matmul(found.swapaxes(0, 1), head.swapaxes(1, 2)).swapaxes(0, 1)
        return found, np.moveaxis(met, -1, 0)


def feature_sums(tables: Sequence[Floats]) -> Sums:
    """Return what sums rows of tables; see :class:`FeatureSums`."""
    module = integer_layers.native()
    if module is None or tables[0].shape[1] % _LANES:  # the kernels know whole vectors
        return FeatureSums(tables)
    found: Sums = module.FeatureSums([np.ascontiguousarray(table) for table in tables])
    return found
