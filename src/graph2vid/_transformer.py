"""A transformer encoder in NumPy, built as BERT is: attention, two-layer perceptron, each added and then normalised.

The weights of a layer are called ``qkv``, ``out``, ``norm1``, ``up``, ``down`` and ``norm2``, each with ``.weight`` and
``.bias``; a matrix is kept so that rows are multiplied from the left: [in, out].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

_TANH_SCALE = np.float32(-2 * np.sqrt(2 / np.pi))
_LARGEST_POWER = np.float32(80)
_IN_BERT = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}


def bert_layer(tensors: Mapping[str, Any], number: int) -> dict[str, NDArray[Any]]:
    """Return the weights of a layer of a BERT model by the names used here; matrices as they are: [out, in]."""
    name, found = f"encoder.layer.{number}", {}
    for part in ("weight", "bias"):
        attention = [tensors[f"{name}.attention.self.{which}.{part}"] for which in ("query", "key", "value")]
        found[f"qkv.{part}"] = np.concatenate(attention)
        found |= {f"{ours}.{part}": tensors[f"{name}.{theirs}.{part}"] for ours, theirs in _IN_BERT.items()}
    return found


def ready(array: NDArray[Any]) -> Floats:
    """Return a weight in 32-bit numbers, a matrix [out, in] as [in, out]."""
    return np.ascontiguousarray(array.T, dtype=np.float32)


@dataclass(frozen=True)
class Transformer:
    """Computes layers.

    Attributes
    ----------
    weights : mapping of str to float32 array
        By name: ``LAYER.qkv.weight``, …; there may be others.
    heads : int
        Of the attention.
    activation : callable
        Of the perceptron; may overwrite its argument.
    epsilon : float
        Added to variances.
    """

    weights: Mapping[str, Floats]
    heads: int
    activation: Callable[[Floats], Floats]
    epsilon: float = 1e-12

    def linear(self, value: Floats, name: str) -> Floats:
        """Return value [..., in] times a matrix, plus a bias: [..., out]."""
        found: Floats = value.reshape(-1, value.shape[-1]) @ self.weights[f"{name}.weight"]
        found += self.weights[f"{name}.bias"]
        return found.reshape(*value.shape[:-1], -1)

    def normalise(self, value: Floats, name: str) -> Floats:
        """Give each row mean 0 and variance 1, then the learned scale and shift; ``value`` is overwritten."""
        value -= value.mean(axis=-1, keepdims=True)
        variance = np.einsum("...j,...j->...", value, value)[..., None] / np.float32(value.shape[-1])
        value *= 1 / np.sqrt(variance + np.float32(self.epsilon))
        value *= self.weights[f"{name}.weight"]
        value += self.weights[f"{name}.bias"]
        return value

    def layer(self, value: Floats, name: str, masked: Floats | None = None) -> Floats:
        """Return the next values [..., pieces, width]; ``masked`` is added to the scores of the attention."""
        mixed = self.linear(self._attend(self.linear(value, f"{name}.qkv"), masked), f"{name}.out")
        mixed += value
        mixed = self.normalise(mixed, f"{name}.norm1")
        found = self.linear(self.activation(self.linear(mixed, f"{name}.up")), f"{name}.down")
        found += mixed
        return self.normalise(found, f"{name}.norm2")

    def _attend(self, read: Floats, masked: Floats | None) -> Floats:
        """Return the mixed contents, given query, key and content of all pieces."""
        by_head = read.reshape(*read.shape[:-1], 3, self.heads, -1)
        query, key, content = np.moveaxis(by_head, (-3, -2), (0, -3))  # each [..., heads, pieces, width of a head]
        scores = np.matmul(query * np.float32(query.shape[-1] ** -0.5), key.swapaxes(-1, -2))
        if masked is not None:
            scores += masked
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        mixed: Floats = np.matmul(scores, content)
        mixed /= scores.sum(axis=-1, keepdims=True)
        mixed = mixed.swapaxes(-2, -3)
        return mixed.reshape(*mixed.shape[:-2], -1)


def gelu(x: Floats) -> Floats:
    """Return x · Φ(x), Φ being the normal distribution function, to within 2e-7 of |x|.

    NumPy has no error function; this is the rational approximation 7.1.26 of Abramowitz and Stegun.
    """
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    tail = np.float32(1.061405429) * t
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(coefficient)
        tail *= t
    tail *= np.exp(-z * z)
    tail *= np.float32(0.5)  # 1 - Φ(|x|)
    result: Floats = x * np.where(x > 0, 1.0 - tail, tail)
    return result


def gelu_tanh(value: Floats) -> Floats:
    """Return the same in its tanh form; ``value`` is overwritten."""
    raised = value * value
    raised *= _TANH_SCALE * np.float32(0.044715)
    raised += _TANH_SCALE
    raised *= value
    np.minimum(raised, _LARGEST_POWER, out=raised)
    np.exp(raised, out=raised)  # (1 + tanh y) / 2 = 1 / (1 + exp(-2y)), and exp is quicker
    raised += 1
    value /= raised
    return value
