"""Models of sentence-transformers, with tiny random weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.embed import embedder, sources, text_embedder

sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the package sentence-transformers")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cut", "the", "tomato", "tomate", "schneiden")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with mean pooling, as the package itself writes one."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    place = tmp_path_factory.mktemp("st")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(place / "bert")
    (place / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast.from_pretrained(place, model_max_length=16).save_pretrained(place / "bert")
    transformer = Transformer(str(place / "bert"))
    pooling = Pooling(8, pooling_mode="mean")
    sentence_transformers.SentenceTransformer(modules=[transformer, pooling]).save(str(place / "model"))
    return place / "model"


def test_a_tiny_model_by_its_folder(folder: Path) -> None:
    tiny = text_embedder(f"st:{folder}")
    texts = ["cut the tomato", "tomate schneiden", " "]
    made = tiny(texts)
    assert made.shape == (3, 8) and made.dtype == np.float32 and not made[2].any()
    own = sentence_transformers.SentenceTransformer(str(folder)).encode(texts[:2])
    np.testing.assert_allclose(made[:2], own, atol=1e-6)
    assert not tiny.joint


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(Graph2VidError, match=r"cannot load the model 'some-model'.*its folder: st:PATH/TO/FOLDER"):
        embedder("st:some-model")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a model that st can load"):
        embedder(f"st:{tmp_path}")


def test_a_model_downloaded_before_is_used_without_the_hub(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    store = tmp_path / "models--sentence-transformers--tiny"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(commit)
    shutil.copytree(folder, store / "snapshots" / commit)
    monkeypatch.setattr(sources, "hub_answers", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    tiny = embedder("st:tiny")
    assert tiny.version.startswith(commit)
    np.testing.assert_allclose(tiny(["cut"]), embedder(f"st:{folder}")(["cut"]), atol=1e-6)
