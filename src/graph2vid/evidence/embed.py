"""Embedders of text behind names, so that words said and steps can be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import MissingDependencyError
from graph2vid.registry import Registry

Embedder: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating[Any]]]
"""From Q texts to embeddings [Q, D]; a text without known words is a row of zeros."""

EMBEDDERS: Registry[Callable[[], Embedder]] = Registry("text embedder", "graph2vid.embedders")
"""Functions that load an embedder, by name."""


@cache
def text_embedder(name: str = "wordllama") -> Embedder:
    """Load the embedder called ``name``; once per process."""
    return EMBEDDERS.get(name)()


@EMBEDDERS.register("wordllama")
def _wordllama() -> Embedder:
    """Load the small word embeddings that come with the package wordllama (256 dimensions, nothing is downloaded)."""
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("comparing texts needs the package wordllama: pip install 'graph2vid[text]'")
    from wordllama import WordLlama

    model = WordLlama.load(cache_dir=Path(spec.origin).parent, disable_download=True)

    def embed(texts: Sequence[str]) -> NDArray[np.floating[Any]]:
        if not texts:
            return np.zeros((0, 256), dtype=np.float32)
        return np.asarray(model.embed(list(texts)))

    return embed
