"""Layers in whole numbers: the kernels on every instruction set, and NumPy with the same arithmetic."""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

from graph2vid._transformer import Transformer, gelu_tanh, ready
from graph2vid.text.learned.integer_layers import EPSILON, Layer, Linear, Matrix, Norm, layer, linear, native
from graph2vid.text.learned.tensors import quantise

module = native()
needs_kernels = pytest.mark.skipif(module is None, reason="the kernels are not built")
LEVELS = range(len(module.encoder_levels())) if module else range(1)


def matrix(random: np.random.Generator, out: int, inputs: int) -> Matrix:
    weight = random.integers(-127, 128, size=(out, inputs)).astype(np.int8)
    numbers = random.normal(size=(2, out)).astype(np.float32)
    return Matrix(weight, np.abs(numbers[0]) / 127, numbers[1])


def parts(random: np.random.Generator, width: int, inner: int) -> tuple[dict[str, Matrix], dict[str, Norm]]:
    sizes = {"qkv": (3 * width, width), "out": (width, width), "up": (inner, width), "down": (width, inner)}
    norms = {name: Norm(*random.normal(size=(2, width)).astype(np.float32)) for name in ("norm1", "norm2")}
    return {name: matrix(random, *size) for name, size in sizes.items()}, norms


def rows_of(kind: str, random: np.random.Generator, count: int, width: int) -> Any:
    rows = random.normal(size=(count, width)).astype(np.float32)
    if kind == "zeros":
        rows[:] = 0
    elif kind == "huge":
        rows *= np.float32(1e30)
    elif kind == "tiny":
        rows[0] *= np.float32(1e-33)
        rows[-1] *= np.float32(1e-42)
    elif kind == "largest sums":
        rows = np.sign(rows) * 5
    elif kind == "one sign":
        rows = np.abs(rows)
    return rows


@needs_kernels
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["plain", "zeros", "huge", "tiny", "largest sums", "one sign"])
@pytest.mark.parametrize(
    ("out", "inputs", "count"), [(1, 1, 1), (3, 5, 2), (64, 384, 7), (65, 1600, 13), (17, 2049, 5), (130, 7, 6)]
)
def test_the_product_is_that_of_numpy_bit_by_bit(level: int, kind: str, out: int, inputs: int, count: int) -> None:
    random = np.random.default_rng([out, inputs, count])
    weights, rows = matrix(random, out, inputs), rows_of(kind, random, count, inputs)
    assert module is not None
    found = module.QuantisedLinear(weights, level)(rows)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, Linear(weights)(rows))
    if kind != "huge":
        activated = module.QuantisedLinear(weights, level, gelu=True)(rows)
        np.testing.assert_allclose(activated, Linear(weights, gelu=True)(rows), rtol=1e-5, atol=1e-6)


@needs_kernels
def test_the_largest_sums_do_not_overflow() -> None:
    inputs = 32_768
    weights = Matrix(np.full((3, inputs), -127, dtype=np.int8), *np.ones((2, 3), dtype=np.float32))
    rows = np.ones((2, inputs), dtype=np.float32)
    rows[1] *= -1
    assert module is not None
    for level in LEVELS:
        found = module.QuantisedLinear(weights, level)(rows)
        np.testing.assert_allclose(found, [[-127 * inputs + 1] * 3, [127 * inputs + 1] * 3], rtol=1e-6)
    with pytest.raises(ValueError, match="32768 inputs"):
        module.QuantisedLinear(matrix(np.random.default_rng(0), 1, inputs + 1))


SIZES = [(16, 2, 32, 1), (24, 1, 40, 9), (64, 2, 50, 33), (256, 2, 300, 70), (384, 12, 1536, 20)]


@needs_kernels
@pytest.mark.parametrize(("width", "heads", "inner", "count"), SIZES)
def test_a_layer_is_the_same_on_every_instruction_set(width: int, heads: int, inner: int, count: int) -> None:
    random = np.random.default_rng([width, count])
    matrices, norms = parts(random, width, inner)
    assert module is not None
    for kind in ("plain", "zeros", "huge"):
        rows = rows_of(kind, random, count, width)
        found = [
            module.QuantisedLayer(**matrices, **norms, heads=heads, epsilon=EPSILON, level=level)(rows)
            for level in LEVELS
        ]
        assert all(np.array_equal(found[0], other, equal_nan=True) for other in found)
        if kind == "plain":
            apart = np.abs(found[0] - Layer(matrices, norms, heads)(rows))
            # Around the sums NumPy rounds otherwise: hardly ever, a number falls to the neighbouring level.
            assert np.median(apart) < 1e-5 and apart.mean() < 1e-3


def test_a_layer_is_close_to_one_in_floats() -> None:
    random = np.random.default_rng(5)
    width, inner, heads = 64, 256, 2
    sizes = {"qkv": (3 * width, width), "out": (width, width), "up": (inner, width), "down": (width, inner)}
    floats = {f"{name}.weight": random.normal(size=size).astype(np.float32) / 8 for name, size in sizes.items()}
    biases = {f".{name}.bias": random.normal(size=size[0]).astype(np.float32) / 8 for name, size in sizes.items()}
    whole = quantise(floats)
    norms = {name: Norm(np.ones(width, np.float32), np.zeros(width, np.float32)) for name in ("norm1", "norm2")}
    matrices = {
        name: Matrix(whole[f"{name}.weight"], whole[f"{name}.weight#scale"].ravel(), biases[f".{name}.bias"])
        for name in sizes
    }
    weights = {f".{name}": ready(value) for name, value in floats.items()} | biases
    weights |= {f".{name}.{part}": value for name, norm in norms.items() for part, value in norm._asdict().items()}
    rows = random.normal(size=(40, width)).astype(np.float32)
    exact = Transformer(weights, heads, gelu_tanh).layer(rows, "")
    for found in (layer(matrices, norms, heads)(rows), Layer(matrices, norms, heads)(rows)):
        assert np.sqrt(np.mean((found - exact) ** 2)) < 0.02


def test_without_kernels_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph2vid.text.learned.integer_layers.native", lambda: None)
    random = np.random.default_rng(6)
    matrices, norms = parts(random, 16, 32)
    assert isinstance(layer(matrices, norms, 2), Layer)
    assert isinstance(linear(matrices["up"]), Linear)


@needs_kernels
def test_layers_run_side_by_side_and_refuse_what_does_not_fit() -> None:
    random = np.random.default_rng(7)
    matrices, norms = parts(random, 64, 128)
    one = layer(matrices, norms, 2)
    rows = random.normal(size=(50, 64)).astype(np.float32)
    expected, found = one(rows), []
    threads = [Thread(target=lambda: found.append(one(rows))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(np.array_equal(expected, other) for other in found)
    assert one(rows[:0]).shape == (0, 64)
    with pytest.raises(ValueError, match="another width"):
        one(rows[:, :32].copy())
    assert module is not None
    with pytest.raises(ValueError, match="multiple of 8"):
        module.QuantisedLayer(**matrices, **norms, heads=16, epsilon=EPSILON)
    with pytest.raises(ValueError, match="do not fit together"):
        module.QuantisedLayer(**matrices | {"up": matrices["down"]}, **norms, heads=2, epsilon=EPSILON)
    with pytest.raises(ValueError, match="per output"):
        module.QuantisedLinear(matrices["up"]._replace(bias=np.zeros(3, dtype=np.float32)))
