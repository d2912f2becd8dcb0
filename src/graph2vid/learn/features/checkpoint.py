"""Checkpoints: a folder that training goes on from, and that ``graph2vid ground --model`` uses.

``checkpoint.json`` says everything but numbers, and which safetensors files beside it hold these: the weights and the
optimiser after the last epoch, and the weights of the best. A file is never changed once the JSON names it, and the
JSON is replaced in one go, so whenever the process is killed the folder holds one whole state.
"""

from __future__ import annotations

import base64
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graph2vid import __version__
from graph2vid._files import check_format, read_bytes, read_json, write_bytes, write_json
from graph2vid._training_options import TrainingOptions
from graph2vid._values import count_of, shown
from graph2vid.errors import FormatError, Graph2VidError
from graph2vid.evidence import content_hash
from graph2vid.learn.features.residual_mlp import ResidualMLP

NAME = "checkpoint.json"
_FORMAT = "graph2vid-features"
_VERSION = 1
_MOST_UNITS = 1 << 16  # of a layer
_LONGEST_MESSAGE = 400  # characters
_PLAIN = ("data", "about", "dimension", "hidden", "epoch", "best", "history")


@dataclass
class State:
    """Where a training stands.

    Attributes
    ----------
    options : TrainingOptions
    data : str
        The fingerprint of what is trained on.
    about : dict
        What a user of the features must know: ``comparison``, ``source`` of the clips' vectors, dataset, graphs.
    dimension, hidden : int
        Of the MLP.
    epoch : int
        Epochs done.
    best : int
        The epoch whose weights are kept for use; 0: the features as given.
    history : list of dict
        One row per epoch from 0 on: ``epoch``, ``loss``, and the metrics of the validation.
    random : Tensor
        The state of the generator that shuffles.
    weights, optimiser, best_weights : dict of str to Tensor
        The numbers.
    best_scores : list of float
        What each validation video scored in the best epoch; none without a validation.
    """

    options: TrainingOptions
    data: str
    about: dict[str, Any]
    dimension: int
    hidden: int
    epoch: int = 0
    best: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    random: Tensor = field(default_factory=lambda: torch.Generator().get_state())
    weights: dict[str, Tensor] = field(default_factory=dict)
    optimiser: dict[str, Tensor] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    best_scores: list[float] = field(default_factory=list)

    def model(self) -> ResidualMLP:
        """Return the features of the best epoch, on the CPU."""
        return self.module(self.best_weights).eval()

    def module(self, weights: dict[str, Tensor]) -> ResidualMLP:
        """Return features with these weights."""
        mlp = ResidualMLP(self.dimension, self.hidden, background="prototype" in weights)
        mlp.load_state_dict(weights)
        return mlp


def save(folder: str | os.PathLike[str], state: State) -> None:
    """Write a checkpoint; the one that was there stays whole until the new one is."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {f"model.{name}": value for name, value in state.weights.items()}
    numbers |= {f"optimiser.{name}": value for name, value in state.optimiser.items()}
    files = {
        "last": _write_tensors(folder / f"epoch-{state.epoch}.safetensors", numbers),
        "best": _write_tensors(folder / f"best-{state.best}.safetensors", state.best_weights),
    }
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "graph2vid": __version__,
        "torch": torch.__version__,
        **{name: getattr(state, name) for name in (*_PLAIN, "best_scores")},
        "options": asdict(state.options),
        "random": base64.b64encode(state.random.numpy().tobytes()).decode("ascii"),
        "files": files,
    }
    write_json(folder / NAME, document)
    for path in folder.glob("*.safetensors"):
        if path.name not in {file["name"] for file in files.values()}:
            path.unlink(missing_ok=True)


def _write_tensors(path: Path, tensors: dict[str, Tensor]) -> dict[str, str]:
    from safetensors.torch import save as to_bytes

    data = to_bytes({name: value.detach().cpu().contiguous() for name, value in tensors.items()})
    if not path.exists() or read_bytes(path) != data:
        write_bytes(path, data)
    return {"name": path.name, "hash": content_hash(path)}


def load(path: str | os.PathLike[str]) -> State:
    """Read a checkpoint: its folder, or the JSON in it."""
    path = Path(path)
    path = path / NAME if path.is_dir() else path
    document = check_format(read_json(path), kind=_FORMAT, version=_VERSION, source=str(path))
    try:
        _check(document)
        options = TrainingOptions(**document["options"])
        last, best = (_read_tensors(path.parent, document["files"][kind]) for kind in ("last", "best"))
        state = State(
            options,
            **{name: document[name] for name in _PLAIN},
            random=torch.frombuffer(bytearray(base64.b64decode(document["random"])), dtype=torch.uint8),
            weights=_part(last, "model."),
            optimiser=_part(last, "optimiser."),
            best_weights=best,
            best_scores=document.get("best_scores", []),
        )
        state.model()  # whether the weights fit
    except Graph2VidError as error:
        if len(str(error)) <= _LONGEST_MESSAGE:
            raise
        raise FormatError(f"{path} is damaged: {str(error)[:_LONGEST_MESSAGE]}…") from error
    except Exception as error:  # torch and safetensors raise whatever comes their way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise FormatError(f"{path} is damaged, or was made by another version: {reason}") from error
    return state


def _check(document: dict[str, Any]) -> None:
    """Refuse a document whose numbers or words cannot be those of a checkpoint, before anything is made from them."""
    for key in ("dimension", "hidden"):
        count_of(document[key], key, least=1, most=_MOST_UNITS)
    for key in ("epoch", "best"):
        count_of(document[key], key)
    for key, kind in (("about", dict), ("history", list), ("data", str)):
        if not isinstance(document[key], kind):
            raise TypeError(f"{key!r} must be a {kind.__name__}, not {shown(document[key])}")


def _read_tensors(folder: Path, file: dict[str, str]) -> dict[str, Tensor]:
    from safetensors.torch import load as from_bytes

    path = folder / Path(file["name"]).name
    data = read_bytes(path)
    if content_hash(path) != file["hash"]:
        raise FormatError(f"{path} is damaged: its bytes are not those that {NAME} speaks of")
    tensors: dict[str, Tensor] = from_bytes(data)
    return tensors


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def copy_of(module: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a module as they are now."""
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}


def optimiser_numbers(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return what an optimiser remembers of each parameter, under ``PARAMETER.NAME``."""
    return {
        f"{place}.{name}": value.detach().cpu().clone()
        for place, of_parameter in optimiser.state_dict()["state"].items()
        for name, value in of_parameter.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, numbers: dict[str, Tensor]) -> None:
    """Let an optimiser remember what :func:`optimiser_numbers` returned."""
    found: dict[int, dict[str, Tensor]] = {}
    for key, value in numbers.items():
        place, _, name = key.partition(".")
        found.setdefault(int(place), {})[name] = value.clone()
    optimiser.load_state_dict({"state": found, "param_groups": optimiser.state_dict()["param_groups"]})
