"""A learned parser of toy size, and an encoder of toy size to start training from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graph2vid.text.learned.learned_parser import RecipeModel
from graph2vid.text.learned.network_numpy import Network, Shape, expected_shapes
from graph2vid.text.learned.tensors import Tensors, write_safetensors
from graph2vid.text.learned.words import Pieces

SHAPE = Shape(width=16, heads=4, inner=32, shared=1, own=1, branches=2, positions=64, kind=4, arc=12, label=8, pair=6)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "!", "mix", "flour", "water", "bowl", "the",
    *LETTERS, *(f"##{letter}" for letter in LETTERS), *"0123456789", *(f"##{digit}" for digit in "0123456789"),
)  # fmt: skip


def random_tensors(seed: int = 0, shape: Shape = SHAPE) -> Tensors:
    generator = np.random.default_rng(seed)
    return {
        name: (generator.normal(size=size) * 0.3).astype(np.float32)
        for name, size in expected_shapes(shape, len(VOCABULARY)).items()
    }


def random_model(seed: int = 0) -> RecipeModel:
    return RecipeModel(Network(SHAPE, random_tensors(seed)), Pieces(VOCABULARY))


def write_encoder(folder: Path, seed: int = 0) -> Path:
    """Write an encoder in the BERT layout, with the layers that ``SHAPE`` needs."""
    generator = np.random.default_rng(seed)
    width, inner = SHAPE.width, SHAPE.inner
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), width),
        "embeddings.position_embeddings.weight": (SHAPE.positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    linear = {"attention.output.dense": (width, width), "intermediate.dense": (inner, width)}
    linear |= {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
    linear["output.dense"] = (width, inner)
    for layer in range(SHAPE.shared + SHAPE.own):
        for name, size in linear.items():
            sizes[f"encoder.layer.{layer}.{name}.weight"] = size
            sizes[f"encoder.layer.{layer}.{name}.bias"] = size[:1]
    tensors = {name: (generator.normal(size=size) * 0.1).astype(np.float32) for name, size in sizes.items()}
    norms = ["embeddings.LayerNorm"]
    for layer in range(SHAPE.shared + SHAPE.own):
        norms += [f"encoder.layer.{layer}.{part}.LayerNorm" for part in ("attention.output", "output")]
    for name in norms:
        tensors[f"{name}.weight"] = np.ones(width, dtype=np.float32)
        tensors[f"{name}.bias"] = np.zeros(width, dtype=np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors, {})
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return folder
