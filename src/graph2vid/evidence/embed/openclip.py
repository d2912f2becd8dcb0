"""Models of the package open_clip, on single frames; texts and frames share a space."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError, MissingDependencyError
from graph2vid.evidence.embed.frames import clips_by_frame, unit_rows
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Frames, Grid, Image, Vectors
from graph2vid.evidence.embed.pictures import FRAME_RATE
from graph2vid.evidence.embed.sources import one_line, require, torch_device
from graph2vid.evidence.evidence_cache import content_hash

_BATCH_TEXTS = 64


@EMBEDDERS.register("open_clip")
def load(argument: str) -> Embedder:
    """``open_clip:ARCHITECTURE/WEIGHTS``: texts and frames in one space; WEIGHTS is a tag of the package or a file."""
    architecture, _, weights = argument.partition("/")
    if not architecture or not weights:
        raise InputError(
            "the embedder open_clip needs an architecture and weights: open_clip:ARCHITECTURE/TAG_OR_FILE, "
            "such as open_clip:ViT-B-32/laion2b_s34b_b79k"
        )
    name = f"open_clip:{argument}"
    require("open_clip", f"the embedder {name}")
    try:
        import open_clip
    except (ImportError, RuntimeError) as error:  # torchvision of another build than torch raises a RuntimeError
        raise MissingDependencyError(
            f"the embedder {name} needs open_clip, which does not load here ({one_line(error)}): "
            "torch and torchvision must be of one release and build; clip:… does without torchvision"
        ) from error
    file = Path(weights).expanduser()
    try:
        device = torch_device()
        model, _, transform = open_clip.create_model_and_transforms(
            architecture, pretrained=str(file) if file.is_file() else weights, device=device, weights_only=True
        )
        model.eval()
        tokenizer = open_clip.get_tokenizer(architecture)
        dimension = len(_texts(model, tokenizer, ["a"], device)[0])
    except Exception as error:  # of many kinds: names, the network, weights
        raise InputError(
            f"open_clip cannot load {weights!r} for {architecture}: {one_line(error)}; known are the names that "
            "open_clip.list_pretrained() gives, or give a file of weights: open_clip:ARCHITECTURE/PATH/TO/FILE"
        ) from error

    def clips(frames: Frames, grid: Grid) -> Vectors:
        return clips_by_frame(frames, grid, prepare, pictures, rate=FRAME_RATE, dimension=dimension)

    def prepare(image: Image) -> NDArray[np.float32]:
        from PIL import Image as Pillow

        pixels: NDArray[np.float32] = transform(Pillow.fromarray(image)).numpy()
        return pixels

    def pictures(pixels: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            rows: NDArray[np.float32] = model.encode_image(torch.from_numpy(np.stack(pixels)).to(device)).cpu().numpy()
        return rows

    return Embedder(
        name,
        f"{content_hash(file) if file.is_file() else weights}/{version('open_clip_torch')}",
        dimension,
        text_function=lambda texts: _texts(model, tokenizer, texts, device),
        clip_function=clips,
        joint=True,
        frame_rate=FRAME_RATE,
    )


def _texts(model: Any, tokenizer: Any, texts: Sequence[str], device: Any) -> NDArray[np.float64]:
    import torch

    with torch.inference_mode():
        rows = [
            model.encode_text(tokenizer(list(texts[start : start + _BATCH_TEXTS])).to(device)).cpu().numpy()
            for start in range(0, len(texts), _BATCH_TEXTS)
        ]
    return unit_rows(np.concatenate(rows))
