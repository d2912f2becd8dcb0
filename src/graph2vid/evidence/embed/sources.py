"""Where models come from: packages, folders and the hub, with errors that say what to do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graph2vid.errors import Graph2VidError, InputError, MissingDependencyError
from graph2vid.evidence.evidence_cache import content_hash, text_hash

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
_SETTINGS = (".json", ".txt", ".model")
_PATIENCE = 3.0  # seconds


def require(package: str, purpose: str, extra: str = "embed") -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingDependencyError(f"{purpose} needs the package {package.replace('_', '-')}", extra=extra)
    return Path(spec.origin).parent


def local_path(argument: str) -> Path | None:
    """Return the file or folder that ``argument`` names, or None if it can only be a name on the hub."""
    path = Path(argument).expanduser()
    if path.exists():
        return path
    if argument.startswith((".", "~", "/")) or argument.count("/") > 1:
        raise InputError(f"there is no file or folder {argument}")
    return None


def folder_version(folder: Path) -> str:
    """Return a hash of what a model's folder holds: its settings and weights, by name and content."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    weights = [path for path in files if path.suffix in _WEIGHTS]
    safe = [path for path in weights if path.suffix == ".safetensors"]
    chosen = [*(path for path in files if path.suffix in _SETTINGS), *(safe or weights)]
    parts = [part for path in chosen for part in (path.relative_to(folder).as_posix(), content_hash(path))]
    return text_hash(*parts)


def model_version(argument: str, organisation: str = "") -> str:
    """Return the version of a model that was loaded: a hash of its folder's content, or its commit on the hub."""
    path = local_path(argument)
    if path is not None:
        return folder_version(path)
    snapshot = _downloaded(_repository(argument, organisation))
    # A version that nobody can tell is like no other, so that nothing is found under it later.
    return snapshot.name if snapshot is not None else f"unknown-{time.time_ns()}"


@contextlib.contextmanager
def loading(family: str, argument: str, organisation: str = "") -> Iterator[bool]:
    """Load a model in this context: errors of its library become one line that says what to do.

    Parameters
    ----------
    family, argument : str
        The two parts of the embedder's name.
    organisation : str
        Where the hub keeps models whose names tell no organisation.

    Yields
    ------
    bool
        Whether the library must do with files that are here already. A hub that cannot be reached is found out at
        once: the libraries would ask it again and again for a minute.
    """
    path = local_path(argument)
    offline = path is None and not hub_answers()
    try:
        if offline and _downloaded(_repository(argument, organisation)) is None:
            raise ConnectionError("it cannot be reached, and the model was not downloaded before")
        with _without_bars():
            yield offline or path is not None
    except Graph2VidError:
        raise
    except ImportError as error:
        why = f"{family}:{argument} needs a package that is not there: {one_line(error)}"
        raise MissingDependencyError(why) from error
    except Exception as error:  # libraries raise many kinds here: of the network, of JSON, of weights
        if path is not None:
            raise InputError(f"{argument} is not a model that {family} can load: {one_line(error)}") from error
        why = f"it is not a folder here, and the hub did not give it ({one_line(error)})"
        hint = f"without a network, download it elsewhere and give its folder: {family}:PATH/TO/FOLDER"
        raise Graph2VidError(f"cannot load the model {argument!r}: {why}; {hint}") from error


def hub_answers() -> bool:
    """Say whether the hub can be reached, as far as a quick look tells."""
    import socket
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():  # then names need not resolve here
        return True
    place = urlsplit(constants.ENDPOINT)
    try:
        with socket.create_connection((place.hostname or "", place.port or 443), timeout=_PATIENCE):
            return True
    except OSError:
        return False


def _repository(argument: str, organisation: str) -> str:
    return f"{organisation}/{argument}" if organisation and "/" not in argument else argument


def _downloaded(repository: str) -> Path | None:
    """Return the folder in which the hub's library keeps a model, named by its commit, if it was downloaded."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", "modules.json"):
        found = try_to_load_from_cache(repository, file)
        if isinstance(found, str):
            return Path(found).parent
    return None


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """Keep the library transformers from drawing its own progress bars."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line that is not too long."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:199] + "…"


def torch_device() -> Any:
    """Return where models run: a GPU where torch sees one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
