"""Reading the text in a picture, with the models that come with rapidocr (PP-OCR, run by onnxruntime)."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from pathlib import Path
from threading import local
from typing import Any, NamedTuple

from graph2vid.errors import MissingDependencyError, needing
from graph2vid.evidence.embed.interface import Image
from graph2vid.weights import check_weights

SIDE = 480
"""Pixels of the shorter side of a frame that is read: captions are legible at it, and more takes longer."""

DETECTED = 640
"""Pixels of the longer side at which text is looked for; what is found is read in the frame as it is."""

LEAST_SCORE = 0.6
"""Of a line, in 0 … 1: what is read with less is no text, mostly."""

_TALLEST = 0.3  # share of the picture: larger "letters" are things
_PACKAGE = "rapidocr"
_MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}


class Line(NamedTuple):
    """A line of text in a picture: where it stands as shares of the picture, and how sure its reader is (0 … 1)."""

    text: str
    left: float
    top: float
    width: float
    height: float
    score: float


def is_installed() -> bool:
    """Say whether text can be read."""
    return all(find_spec(name) is not None for name in (_PACKAGE, "onnxruntime"))


def read_lines(image: Image) -> list[Line]:
    """Read the text in a picture [H, W, 3], line by line."""
    found = _engine()(image[:, :, ::-1])  # it takes blue, green, red
    height, width = image.shape[:2]
    lines = []
    for text, box, score in zip(found.txts or (), found.boxes if found.txts else (), found.scores or (), strict=True):
        (left, top), (right, bottom) = box.min(axis=0).tolist(), box.max(axis=0).tolist()
        if sum(map(str.isalnum, text)) > 1 and bottom - top < _TALLEST * height:
            x, y, across, down = left / width, top / height, (right - left) / width, (bottom - top) / height
            place = round(x, 4), round(y, 4), round(across, 4), round(down, 4)
            lines.append(Line(text.strip(), *place, round(float(score), 3)))
    return lines


_LOADED = local()


def _engine() -> Any:
    """Return the models of this thread: each works on one frame at a time, and on one core."""
    if not hasattr(_LOADED, "engine"):
        _LOADED.engine = _load()
    return _LOADED.engine


def _load() -> Any:
    what = "reading the text on the screen needs the package rapidocr"
    if not is_installed():
        raise MissingDependencyError(what, extra="ocr")
    folder = Path(os.fspath(find_spec(_PACKAGE).origin)).parent  # type: ignore[union-attr, arg-type]
    check_weights(_PACKAGE, folder)
    with needing(what, "ocr"):
        from rapidocr import RapidOCR
    models = {f"{part}.model_path": str(folder / "models" / file) for part, file in _MODELS.items()}
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # captions are not upside down
            "Global.text_score": LEAST_SCORE,
            "Det.limit_type": "max",
            "Det.limit_side_len": DETECTED,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            **models,
        }
    )
