"""What the numbers were measured on: a time means nothing without it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from graph2vid import __version__
from graph2vid._processes import cpu_count
from graph2vid.alignment import native
from graph2vid.errors import Graph2VidError


def machine() -> dict[str, Any]:
    """Return processor, number of them, vector instructions in use, system, versions, and how busy it is now.

    ``load`` is the mean number of processes that wanted a processor over the last minute, None where the system
    does not tell: beside others, two threads cannot be twice as quick as one.
    """
    kernels = native()
    return {
        "processor": _processor(),
        "processors": cpu_count(),
        "simd": None if kernels is None else str(kernels.simd()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "graph2vid": __version__,
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def in_words(found: dict[str, Any]) -> str:
    """Return a machine as one line."""
    several = "s" if found["processors"] != 1 else ""
    kernels = found["simd"] or "no compiled kernels"
    load = "" if found["load"] is None else f"; load before the run {found['load']:.2f}"
    return (
        f"{found['processor']}, {found['processors']} processor{several}, {kernels}, {found['system']}, "
        f"Python {found['python']}, NumPy {found['numpy']}, graph2vid {found['graph2vid']}{load}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or "unknown processor"


def kernels_or_error() -> ModuleType:
    """Return the extension module.

    Raises
    ------
    Graph2VidError
        Where it is not installed: without it there is nothing to measure.
    """
    found = native()
    if found is None:
        raise Graph2VidError(
            "this measures the compiled kernels, which are not installed here: install graph2vid where a C++ "
            "compiler is found (graph2vid doctor says more)"
        )
    return found
