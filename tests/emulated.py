"""CUDA kernels without a GPU: compiled as C++, their threads are fibres on one processor (emulator.hpp)."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from graph2vid.learn.cuda import Kind, cuda_costs
from graph2vid.learn.cuda.cuda_costs import source
from graph2vid.learn.cuda.cuda_numbers import Numbers
from graph2vid.learn.cuda.plan import Shape

PRELUDE = Path(__file__).with_name("emulator.hpp")
MOST_SHARED = 232_448  # bytes, as on an H200
IRRELEVANT = ("-DTHREADS=", "-DBLOCKS=")  # to what is computed, but for how few registers there are
WRONG = {1: "threads wait for what never comes", 2: "it writes behind its shared memory"}
FLAGS = ("-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off")
CALL = """
extern "C" int run_{name}(unsigned blocks, unsigned across, unsigned threads, unsigned shared, unsigned seed,
                          const Batch *batch, int group) {{
    return emulator::run(blocks, across, threads, shared, seed, [=] {{ {name}(*batch{group}); }});
}}
"""


class Kernel:
    """Launched as that of `compiler` is."""

    def __init__(self, function: Any, threads: int, shared: int, across: int, seed: int) -> None:
        self._function, self._sizes, self._seed = function, (across, threads, shared), seed

    def launch(self, blocks: int, stream: int, batch: ctypes.Structure, group: Any = 0) -> None:
        """Run so many blocks, one after the other."""
        status = self._function(blocks, *self._sizes, self._seed, ctypes.byref(batch), group)
        assert not status, WRONG[status]


class Module:
    """The kernels of one source."""

    def __init__(self, library: ctypes.CDLL, seed: int) -> None:
        self._library, self._seed = library, seed

    def kernel(self, name: str, threads: int, shared: int = 0, across: int = 1) -> Kernel:
        """Return one of them, as `compiler` does."""
        return Kernel(getattr(self._library, f"run_{name}"), threads, shared, across, self._seed)


def compiled(kind: Kind, numbers: Numbers, shape: Shape, folder: Path) -> ctypes.CDLL:
    """Compile the kernels of a shape, those of a folder once."""
    names = ["backward" if shape.group else "forward"]
    if not shape.width and kind.gradient:  # both are in one source, and gradients are collected afterwards
        names = ["forward", "backward", "collect", *(["collect_skips"] if kind.skips else [])]
    calls = [CALL.format(name=name, group=", group" if name == "collect" else "") for name in names]
    machine = Path(cuda_costs.__file__).with_name("machine.cuh").read_text()
    code = source(shape)[0].removeprefix(machine).replace("extern __shared__ double shared_memory[];", "")
    options = [option for option in kind.defines(numbers, shape) if option.startswith("-D")]
    options = [option for option in options if not option.startswith(IRRELEVANT)]
    options += ["-DTHREADS=1024", "-DBLOCKS=2"]
    # As lines of the source: what is defined before a precompiled header makes g++ read the header anew.
    defines = [f"#define {option.removeprefix('-D').replace('=', ' ', 1)}\n" for option in options]
    text = "".join([f'#include "{PRELUDE.name}"\n', *defines, code, *calls])
    name = hashlib.sha256(text.encode()).hexdigest()[:20]
    if not (folder / f"{name}.so").exists():
        precompile_prelude(folder)
        (folder / f"{name}.cpp").write_text(text)
        subprocess.run(["g++", *FLAGS, "-shared", f"{name}.cpp", "-o", f"{name}.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def precompile_prelude(folder: Path) -> None:
    """Compile what all kernels begin with once for a folder: reading it takes longer than the kernels do."""
    if not (folder / PRELUDE.name).exists():
        (folder / PRELUDE.name).write_text(PRELUDE.read_text())
        subprocess.run(["g++", *FLAGS, "-x", "c++-header", PRELUDE.name], cwd=folder, check=True)


@contextmanager
def emulation(folder: Path, seed: int = 0) -> Iterator[None]:
    """Let `costs_on_gpu` take tensors of the CPU and compute with kernels that are compiled into a folder.

    Their threads run in an order drawn from ``seed``; memory that was not written is not a number.
    """

    def module(device: None, kind: Kind, numbers: Numbers, kernel: Shape) -> Module:
        return Module(compiled(kind, numbers, kernel, folder), seed)

    deterministic = torch.are_deterministic_algorithms_enabled()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_costs, "_module", module)
        patch.setattr(cuda_costs, "_most_shared", lambda device: MOST_SHARED)
        patch.setattr(cuda_costs, "_free", lambda device: 1 << 30)
        patch.setattr(cuda_costs, "_stream", lambda device: 0)
        patch.setattr(torch.cuda, "current_device", lambda: None)
        cuda_costs._prepared.cache_clear()
        torch.use_deterministic_algorithms(True)  # fills what is new
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic)
            cuda_costs._prepared.cache_clear()
