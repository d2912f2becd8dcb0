"""wordllama: small word embeddings that come whole with their package. The light default."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder
from graph2vid.evidence.embed.sources import require
from graph2vid.weights import check_weights

DIMENSION = 256


@EMBEDDERS.register("wordllama")
def load(argument: str) -> Embedder:
    """``wordllama``: texts, as the mean of word vectors (256 dimensions; nothing is downloaded)."""
    if argument:
        raise InputError(f"the embedder wordllama takes no argument, and was given {argument!r}")
    folder = require("wordllama", "comparing texts", "text")

    @cache
    def model() -> Any:
        from wordllama import WordLlama

        check_weights("wordllama", folder)
        return WordLlama.load(cache_dir=folder, disable_download=True)

    def texts(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
        return np.asarray(model().embed(list(texts)))

    return Embedder(
        "wordllama", f"{version('wordllama')}/{DIMENSION}", DIMENSION, text_function=texts, languages=("en",)
    )
