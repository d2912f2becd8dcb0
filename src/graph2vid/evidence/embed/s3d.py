"""S3D trained with MIL-NCE on HowTo100M: video and texts in one space of 512 dimensions, from a checkpoint file.

What its authors ask for: frames as red, green and blue in 0…1, without further normalisation; the largest square in
the middle, scaled to 224 × 224; 32 frames at 10 per second, which is 3.2 s; texts in lower case, cut into words, the
first 16 of those that the dictionary knows; vectors as they come, compared by their dot product.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError
from graph2vid.evidence.embed.frames import clips_by_window, square_crop
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Image, TextFunction, Vectors
from graph2vid.evidence.embed.sources import one_line, require, torch_device
from graph2vid.evidence.evidence_cache import content_hash

if TYPE_CHECKING:
    from graph2vid.evidence.embed.s3d_network import S3D

DIMENSION = 512
FRAME_RATE = 10.0
FRAMES = 32
SIDE = 224
MOST_WORDS = 16
DICTIONARY = "s3d_dict.npy"

_FORM = 1  # of the preprocessing; part of the version
_WORD = re.compile(r"[\w']+")
_BATCH_TEXTS = 256
_COUNTER = ".num_batches_tracked"  # of no use outside training


@EMBEDDERS.register("s3d")
def load(argument: str) -> Embedder:
    """``s3d:CHECKPOINT[,DICTIONARY]``: clips and texts in one space, by S3D trained with MIL-NCE on HowTo100M.

    The dictionary is by default the file ``s3d_dict.npy`` beside the checkpoint; without one, clips alone are embedded.
    """
    first, _, second = argument.partition(",")
    if not first:
        raise InputError("the embedder s3d needs a checkpoint: s3d:s3d_howto100m.pth[,s3d_dict.npy]")
    require("torch", f"the embedder s3d:{argument}")
    checkpoint = Path(first).expanduser()
    if not checkpoint.is_file():
        raise InputError(f"there is no checkpoint {first}")
    dictionary = Path(second).expanduser() if second else checkpoint.with_name(DICTIONARY)
    if second and not dictionary.is_file():
        raise InputError(f"there is no dictionary {second}")

    @cache
    def network() -> Any:
        import torch

        loaded: Any = load_network(checkpoint).eval()
        return loaded.to(torch_device(), memory_format=torch.channels_last_3d)  # faster by half on a processor

    version = content_hash(checkpoint)
    texts: TextFunction | None = None
    if dictionary.is_file():
        version += "/" + content_hash(dictionary)
        words = read_dictionary(dictionary)

        def texts(texts: Sequence[str]) -> Vectors:
            return _embed_texts(network(), texts, words, dictionary)

    def embed(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return _embed_windows(network(), windows)

    clips = partial(clips_by_window, prepare=prepare, embed=embed, rate=FRAME_RATE, length=FRAMES, dimension=DIMENSION)
    return Embedder(
        f"s3d:{argument}",
        f"{version}/{_FORM}",
        DIMENSION,
        text_function=texts,
        clip_function=clips,
        joint=texts is not None,
        comparison="dot",
        frame_rate=FRAME_RATE,
        clip_seconds=FRAMES / FRAME_RATE,
    )


def prepare(image: Image) -> Image:
    """Cut and scale a frame; uint8 [224, 224, 3]."""
    return square_crop(image, SIDE)


def to_video(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Turn B windows of frames [T, H, W, 3] into what the network takes: [B, 3, T, H, W], values in 0…1."""
    video = np.stack(windows).transpose(0, 4, 1, 2, 3).astype(np.float32)
    video /= np.float32(255.0)
    return video


def _embed_windows(network: Any, windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    import torch

    with torch.inference_mode():
        video = torch.from_numpy(to_video(windows)).to(network.fc.weight.device)
        rows: NDArray[np.float32] = network(video).cpu().numpy()
    return rows


def read_dictionary(path: Path) -> dict[str, int]:
    """Read the words of a dictionary, a ``.npy`` file of texts, and number them from 1 (0 is no word)."""
    try:
        words = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is not a dictionary of words, a .npy file of texts: {error}") from error
    if not isinstance(words, np.ndarray) or words.ndim != 1 or words.dtype.kind != "U":
        raise FormatError(f"{path} is not a dictionary of words: a .npy file of texts with one axis is needed")
    return {str(word): number for number, word in enumerate(words, start=1)}


def number_words(text: str, words: Mapping[str, int]) -> list[int]:
    """Return the numbers of the first 16 words that are known, filled up with 0; all 0 if none is known."""
    known = [words[word] for word in _WORD.findall(text.lower()) if word in words][:MOST_WORDS]
    return known + [0] * (MOST_WORDS - len(known))


def _embed_texts(network: Any, texts: Sequence[str], words: Mapping[str, int], dictionary: Path) -> Vectors:
    import torch

    module = network.text_module
    room = module.word_embd.num_embeddings
    if len(words) >= room:
        found = f"{dictionary} holds {len(words)} words, and the checkpoint has vectors for {room - 1}"
        raise FormatError(f"{found}: they are not of one release")
    numbers = np.array([number_words(text, words) for text in texts], dtype=np.int64)
    vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
    known = np.flatnonzero(numbers.any(axis=1))
    with torch.inference_mode():
        for start in range(0, len(known), _BATCH_TEXTS):
            rows = known[start : start + _BATCH_TEXTS]
            vectors[rows] = module(torch.from_numpy(numbers[rows]).to(module.fc1.weight.device)).cpu().numpy()
    return vectors


def load_network(path: Path) -> S3D:
    """Load the network from a checkpoint (``.pth``, of tensors alone, or ``.safetensors``); nothing else is unpickled.

    Raises
    ------
    FormatError
        The file is no such checkpoint; weights that are missing, foreign or of another shape are named.
    """
    import torch

    from graph2vid.evidence.embed.s3d_network import S3D, WORDS

    state = _read_state(path)
    vectors = state.get("text_module.word_embd.weight")
    with torch.device("meta"):  # its own weights are never made: they come from the file
        network = S3D(words=len(vectors) if vectors is not None and vectors.ndim else WORDS)
    wanted = network.state_dict()
    missing = [name for name in wanted if name not in state and not name.endswith(_COUNTER)]
    foreign = [name for name in state if name not in wanted]
    differ = [
        f"{name} {tuple(state[name].shape)} instead of {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in state and state[name].shape != tensor.shape
    ]
    problems = [
        f"{len(names)} {what}: {', '.join(names[:3])}{', …' if len(names) > 3 else ''}"
        for names, what in ((missing, "missing"), (foreign, "foreign"), (differ, "of another shape"))
        if names
    ]
    if problems:
        raise FormatError(f"{path} is not a checkpoint of S3D with texts; weights {'; '.join(problems)}")
    for name, tensor in wanted.items():
        given = state.get(name)
        state[name] = torch.zeros((), dtype=torch.int64) if given is None else given.to(tensor.dtype)
    network.load_state_dict(state, assign=True)
    return network


def _read_state(path: Path) -> dict[str, Any]:
    """Read the tensors of a checkpoint by name; one kept by training (``state_dict``, ``module.``) is unpacked."""
    import torch

    try:
        if path.suffix == ".safetensors":
            require("safetensors", f"reading {path}")
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many kinds, by the kind of damage
        raise FormatError(
            f"{path} is not a checkpoint that can be read without unpickling code: {one_line(error)}"
        ) from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise FormatError(f"{path} is not a checkpoint: it does not hold tensors by name")
    return {str(name).removeprefix("module."): value for name, value in state.items()}
