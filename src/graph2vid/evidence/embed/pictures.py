"""Models of transformers (CLIP, SigLIP) and of open_clip, on single frames; texts and frames share a space."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError, MissingDependencyError
from graph2vid.evidence.embed.frames import EmbedBatch, Prepare, clips_by_frame, unit_rows
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Image, TextFunction
from graph2vid.evidence.embed.sources import loading, local_path, model_version, one_line, require, torch_device
from graph2vid.evidence.evidence_cache import content_hash

FRAME_RATE = 2.0
_BATCH_TEXTS = 64


@EMBEDDERS.register("clip")
def load_clip(argument: str) -> Embedder:
    """``clip:NAME_OR_FOLDER``: texts and frames in one space, by a CLIP model of the hub or in a folder."""
    return _load("clip", argument, "openai/clip-vit-base-patch32")


@EMBEDDERS.register("siglip")
def load_siglip(argument: str) -> Embedder:
    """``siglip:NAME_OR_FOLDER``: texts and frames in one space, by a SigLIP model of the hub or in a folder."""
    return _load("siglip", argument, "google/siglip-base-patch16-224")


def _load(family: str, argument: str, example: str) -> Embedder:
    if not argument:
        raise InputError(f"the embedder {family} needs a model: {family}:NAME_OR_FOLDER, such as {family}:{example}")
    name = f"{family}:{argument}"
    for package in ("torch", "transformers", "PIL"):
        require(package, f"the embedder {name}")
    source = str(local_path(argument) or argument)
    with loading(family, argument) as local:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(source, local_files_only=local)
    if config.model_type != family:
        wanted = f"{family}:… needs one of type {family!r}"
        raise InputError(f"{argument} is a model of type {config.model_type!r}, and {wanted}")
    dimension = config.projection_dim if family == "clip" else config.vision_config.hidden_size

    @cache
    def model() -> PictureModel:
        return PictureModel(family, argument, source, config)

    return _embedder(
        name,
        f"{model_version(argument)}/{version('transformers')}",
        dimension,
        lambda texts: model().texts(texts),
        lambda image: model().prepare(image),
        lambda pixels: model().pictures(pixels),
    )


def _embedder(
    name: str, version: str, dimension: int, texts: TextFunction, prepare: Prepare, pictures: EmbedBatch
) -> Embedder:
    """Return the embedder of a model of texts and single pictures."""
    clips = partial(clips_by_frame, prepare=prepare, embed=pictures, rate=FRAME_RATE, dimension=dimension)
    return Embedder(name, version, dimension, texts, clips, joint=True, frame_rate=FRAME_RATE)


class PictureModel:
    """A loaded CLIP or SigLIP model with its tokeniser and its preprocessing of pictures."""

    def __init__(self, family: str, argument: str, source: str, config: Any) -> None:
        with loading(family, argument) as local:
            import torch
            from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

            # In pillow, as the models were trained; the other backend of the package resizes a little differently.
            self.processor = AutoImageProcessor.from_pretrained(source, backend="pil", local_files_only=local)
            self.tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
            model, found = AutoModel.from_pretrained(
                source, config=config, dtype=torch.float32, local_files_only=local, output_loading_info=True
            )
        if found["missing_keys"] or found["mismatched_keys"]:  # the package would fill them with random numbers
            lacking = sorted({str(key) for key in [*found["missing_keys"], *found["mismatched_keys"]]})
            named = ", ".join([*lacking[:3], *["…"] * (len(lacking) > 3)])
            why = f"{len(lacking)} are missing or of another shape: {named}"
            raise FormatError(f"the weights of {argument} are not whole: {why}")
        self.device = torch_device()
        self.model = model.eval().to(self.device)
        self.longest = config.text_config.max_position_embeddings
        # SigLIP was trained on texts that are all filled up to the same length, and looks at the filling too.
        self.padding = "max_length" if family == "siglip" else "longest"
        self.inputs = ("input_ids",) if family == "siglip" else ("input_ids", "attention_mask")

    def texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Embed Q texts [Q, D], at length 1; what is beyond the model's longest text is left out."""
        import torch

        rows = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch, cut = list(texts[start : start + _BATCH_TEXTS]), {"truncation": True, "max_length": self.longest}
            tokens = self.tokenizer(batch, padding=self.padding, return_tensors="pt", **cut)
            with torch.inference_mode():
                given = {key: tokens[key].to(self.device) for key in self.inputs}
                rows.append(_pooled(self.model.get_text_features(**given)))
        return unit_rows(np.concatenate(rows))

    def prepare(self, image: Image) -> NDArray[np.float32]:
        """Resize, crop and normalise a frame as the model's own settings say; float32 [3, H, W]."""
        pixels = self.processor(images=image, input_data_format="channels_last", return_tensors="np")["pixel_values"]
        return np.asarray(pixels[0], dtype=np.float32)

    def pictures(self, pixels: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Embed prepared frames; [B, D]."""
        import torch

        with torch.inference_mode():
            given = torch.from_numpy(np.stack(pixels)).to(self.device)
            return _pooled(self.model.get_image_features(pixel_values=given))


def _pooled(output: Any) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] = getattr(output, "pooler_output", output).float().cpu().numpy()
    return vectors


@EMBEDDERS.register("open_clip")
def load_open_clip(argument: str) -> Embedder:
    """``open_clip:ARCHITECTURE/WEIGHTS``: texts and frames in one space; WEIGHTS is a tag of the package or a file."""
    architecture, _, weights = argument.partition("/")
    if not architecture or not weights:
        form = "open_clip:ARCHITECTURE/TAG_OR_FILE, such as open_clip:ViT-B-32/laion2b_s34b_b79k"
        raise InputError(f"the embedder open_clip needs an architecture and weights: {form}")
    name = f"open_clip:{argument}"
    require("open_clip", f"the embedder {name}")
    try:
        import open_clip
    except (ImportError, RuntimeError) as error:  # torchvision of another build than torch raises a RuntimeError
        raise MissingDependencyError(
            f"the embedder {name} needs open_clip, which does not load here ({one_line(error)}): "
            "torch and torchvision must be of one release and build; clip:… does without torchvision"
        ) from error
    file, device = Path(weights).expanduser(), torch_device()

    def embed(encode: Any, inputs: Any) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            rows: NDArray[np.float32] = encode(torch.as_tensor(inputs).to(device)).cpu().numpy()
        return rows

    def texts(texts: Sequence[str]) -> NDArray[np.float64]:
        starts = range(0, len(texts), _BATCH_TEXTS)
        batches = [tokenizer(list(texts[start : start + _BATCH_TEXTS])) for start in starts]
        return unit_rows(np.concatenate([embed(model.encode_text, batch) for batch in batches]))

    try:
        model, _, transform = open_clip.create_model_and_transforms(
            architecture, pretrained=str(file) if file.is_file() else weights, device=device, weights_only=True
        )
        model.eval()
        tokenizer = open_clip.get_tokenizer(architecture)
        dimension = texts(["a"]).shape[1]
    except Exception as error:  # of many kinds: names, the network, weights
        raise InputError(
            f"open_clip cannot load {weights!r} for {architecture}: {one_line(error)}; known are the names that "
            "open_clip.list_pretrained() gives, or give a file of weights: open_clip:ARCHITECTURE/PATH/TO/FILE"
        ) from error

    def prepare(image: Image) -> NDArray[np.float32]:
        from PIL import Image as Pillow

        pixels: NDArray[np.float32] = transform(Pillow.fromarray(image)).numpy()
        return pixels

    known = f"{content_hash(file) if file.is_file() else weights}/{version('open_clip_torch')}"
    return _embedder(name, known, dimension, texts, prepare, lambda pixels: embed(model.encode_image, np.stack(pixels)))
