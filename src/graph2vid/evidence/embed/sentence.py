"""Texts, embedded by packages that load and run their models themselves: wordllama and sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder
from graph2vid.evidence.embed.sources import loading, local_path, model_version, require, torch_device
from graph2vid.weights import check_weights

DIMENSION = 256  # of wordllama
ORGANISATION = "sentence-transformers"  # whose models are called by their bare names


@EMBEDDERS.register("wordllama")
def load_wordllama(argument: str) -> Embedder:
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

    known = f"{version('wordllama')}/{DIMENSION}"
    return Embedder("wordllama", known, DIMENSION, text_function=texts, languages=("en",))


@EMBEDDERS.register("st")
def load(argument: str) -> Embedder:
    """``st:NAME_OR_FOLDER``: texts, by a model of sentence-transformers, of which some know many languages."""
    if not argument:
        form = "st:NAME_OR_FOLDER, such as st:paraphrase-multilingual-MiniLM-L12-v2"
        raise InputError(f"the embedder st needs a model of sentence-transformers: {form}")
    require("sentence_transformers", f"the embedder st:{argument}")
    path = local_path(argument)
    with loading("st", argument, ORGANISATION) as local:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(path or argument), device=str(torch_device()), local_files_only=local)
        dimension = model.get_embedding_dimension()
    if dimension is None:
        raise InputError(f"the model {argument} does not say how long its vectors are")

    def texts(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
        return np.asarray(model.encode(list(texts), show_progress_bar=False, convert_to_numpy=True))

    known = f"{model_version(argument, ORGANISATION)}/{version('sentence-transformers')}"
    return Embedder(f"st:{argument}", known, dimension, text_function=texts)
