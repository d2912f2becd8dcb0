"""Layers with weights of 8 bits: by the compiled kernels, or in NumPy with the same whole numbers.

Every row that meets a matrix is rounded to 256 levels of its own, its largest number aside, so that sums of products
are sums of whole numbers; queries, keys, values and shares of the attention are rounded more finely. The kernels give
the same bytes on every processor; NumPy gives the same sums, and what is computed around them to the accuracy of 32-bit
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graph2vid._transformer import Floats, Transformer, gelu_tanh

EPSILON = 1e-12
_LEVELS = np.float32(255)
_READ_LEVELS, _SHARE_LEVELS, _CONTENT_LEVELS = 4095, 4095, 1023
_MOST = 2147483000.0
_LEAST = np.float32(1e-30)
_EXACT = 512  # so many products of such numbers add up to less than 2 ** 24, which 32-bit floats hold exactly
_LANES = 8


class Matrix(NamedTuple):
    """Weights of 8 bits, shape (out, in), with a 32-bit scale and bias per output."""

    weight: npt.NDArray[np.int8]
    scale: Floats
    bias: Floats


class Norm(NamedTuple):
    """The scale and shift of a normalisation."""

    weight: Floats
    bias: Floats


def native() -> ModuleType | None:
    """Return the extension module, or None where it was not built, or from older sources."""
    try:
        from graph2vid import _native
    except ImportError:
        return None
    module: ModuleType = _native
    return module if hasattr(module, "best_path") else None


def encoder_level() -> str:
    """Return the instruction set that the kernels run on, or that NumPy computes."""
    module = native()
    return "NumPy" if module is None else str(module.encoder_levels()[0])


def rounded(value: Floats, levels: float, axis: int = -1) -> tuple[Floats, Floats]:
    """Return whole numbers from -levels to levels, and what multiplied by them gives the value: a scale along the axis.

    What is smaller than 1e-30 is nothing.
    """
    limit = np.float32(levels)
    scale, inverse = _scale(np.abs(value).max(axis=axis, keepdims=True) / limit)
    return np.rint(value * inverse).clip(-limit, limit), scale


def _scale(wanted: Floats) -> tuple[Floats, Floats]:
    something = wanted > _LEAST
    return np.where(something, wanted, np.float32(0)), np.divide(1, wanted, out=np.zeros_like(wanted), where=something)


class Linear:
    """Rows times a matrix, plus a bias, then the GELU if it is asked for: in NumPy."""

    def __init__(self, matrix: Matrix, gelu: bool = False) -> None:
        self._matrix = matrix
        self._gelu = gelu

    @cached_property
    def _parts(self) -> list[Floats]:
        """The matrix as [in, out], in parts whose sums are exact."""
        turned = np.ascontiguousarray(self._matrix.weight.T, dtype=np.float32)
        return [turned[at : at + _EXACT] for at in range(0, len(turned), _EXACT)]

    def __call__(self, value: Floats) -> Floats:
        """Return what rows [rows, in] give: [rows, out]."""
        value, rows = value.copy(), np.arange(len(value))
        largest = np.abs(value).argmax(axis=-1)
        apart = value[rows, largest][:, None]
        value[rows, largest] = 0
        high, low = (np.maximum(side.max(axis=-1, keepdims=True), 0) for side in (value, -value))
        scale, inverse = _scale(high / _LEVELS + low / _LEVELS)
        zero = np.rint(low * inverse).clip(0, _LEVELS)
        whole = np.rint(value * inverse).clip(-zero, _LEVELS - zero)
        sums = np.zeros(1, dtype=np.int32)
        for number, part in enumerate(self._parts):
            sums = sums + (whole[:, number * _EXACT : (number + 1) * _EXACT] @ part).astype(np.int32)
        found: Floats = sums.astype(np.float32) * scale
        found += self._matrix.weight.T[largest].astype(np.float32) * apart
        found *= self._matrix.scale
        found += self._matrix.bias
        return gelu_tanh(found) if self._gelu else found


class Layer(Transformer):
    """A transformer layer in NumPy, of matrices (qkv, out, up, down) and norms (norm1, norm2)."""

    def __init__(self, matrices: Mapping[str, Matrix], norms: Mapping[str, Norm], heads: int) -> None:
        weights = {f".{name}.{part}": value for name, norm in norms.items() for part, value in norm._asdict().items()}
        super().__init__(weights, heads, gelu_tanh, EPSILON)
        object.__setattr__(self, "_linear", {f".{name}": Linear(matrix) for name, matrix in matrices.items()})

    def linear(self, value: Floats, name: str) -> Floats:
        found: Floats = vars(self)["_linear"][name](value)
        return found

    def __call__(self, value: Floats) -> Floats:
        """Return the next values [pieces, width]."""
        return self.layer(value, "")

    def _attend(self, read: Floats, masked: Floats | None) -> Floats:
        query, key, content = np.moveaxis(read.reshape(len(read), 3, self.heads, -1), (1, 2), (0, 1))
        pieces, size = query.shape[-2:]
        query, query_scale = rounded(query, min(_READ_LEVELS, _MOST // (size * _READ_LEVELS)))
        key, key_scale = rounded(key, _READ_LEVELS)
        content, content_scale = rounded(content, _CONTENT_LEVELS, axis=-2)
        scores = (
            (query @ key.swapaxes(-1, -2))
            * (query_scale * np.float32(1 / np.sqrt(np.float32(size))))
            * key_scale.swapaxes(-1, -2)
        )
        levels = np.float32(min(_SHARE_LEVELS, _MOST // (pieces * _CONTENT_LEVELS)))
        shares = np.rint(np.exp(scores - scores.max(axis=-1, keepdims=True)) * levels)
        mixed: Floats = (shares @ content) * (1 / shares.sum(axis=-1, keepdims=True)) * content_scale
        return mixed.swapaxes(0, 1).reshape(pieces, -1)


def linear(matrix: Matrix, gelu: bool = False) -> Callable[[Floats], Floats]:
    """Return what multiplies rows [rows, in] by a matrix and adds the bias: [rows, out]; see :class:`Linear`."""
    module = native()
    if module is None:
        return Linear(matrix, gelu)
    found: Callable[[Floats], Floats] = module.QuantisedLinear(matrix, gelu=gelu)
    return found


def layer(matrices: Mapping[str, Matrix], norms: Mapping[str, Norm], heads: int) -> Callable[[Floats], Floats]:
    """Return a transformer layer from values [pieces, width] to the next ones; see :class:`Layer`."""
    module = native()
    if module is None or len(norms["norm1"].weight) % (_LANES * heads):  # the kernels know heads of whole vectors
        return Layer(matrices, norms, heads)
    found: Callable[[Floats], Floats] = module.QuantisedLayer(**matrices, **norms, heads=heads, epsilon=EPSILON)
    return found
