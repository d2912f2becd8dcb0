"""Every kernel compiles without a GPU; with one, they are checked against the reference."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from graph2vid.learn.cuda import CudaError, Kind, compile_cuda  # noqa: E402
from graph2vid.learn.cuda.compiler import nvrtc  # noqa: E402
from graph2vid.learn.cuda.cuda_costs import source  # noqa: E402
from graph2vid.learn.cuda.cuda_numbers import Numbers  # noqa: E402
from graph2vid.learn.cuda.plan import Shape  # noqa: E402

try:
    nvrtc()
    WITHOUT = ""
except CudaError as error:
    WITHOUT = str(error)

needs_compiler = pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT)
SHAPES = {
    "registers": Shape(1, 3, 64, 4, False, 0, 4, 4, 64, 0, 0),
    "registers alone": Shape(1, 3, 64, 4, False, 0, 4, 4, 64, 0, 0, alone=True),
    "shared": Shape(0, 12, 768, 1, False, 0, 1, 2, 768, 0, 0),
    "memory": Shape(0, 0, 1024, 1, False, 0, 1, 1, 1024, 0, 0),
    "spilled": Shape(0, 0, 1024, 1, True, 0, 1, 1, 1024, 0, 0),
}


@needs_compiler
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "kind",
    [
        *(Kind("hard", contiguous, gradient=False) for contiguous in (True, False)),
        *(Kind(*options) for options in product(("softmin", "smoothmin"), (True, False), (True, False))),
        Kind("softmin", contiguous=True, gradient=True, starts=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("bytes_", [4, 8])
def test_every_kernel_compiles_to_ptx(kind: Kind, shape: str, bytes_: int) -> None:
    if SHAPES[shape].width:  # forward and backward apart
        if shape == "shared" and not (kind.contiguous and kind.smoothing != "smoothmin" and bytes_ == 4):
            return
        known = [kind] if kind.smoothing == "smoothmin" and kind.contiguous else [kind, kind._replace(skips=True)]
        for one in known:
            compiles_to_ptx(one, SHAPES[shape], bytes_, {"forward"})
            if kind.gradient:
                compiles_to_ptx(one, replace(SHAPES[shape], group=4), bytes_, {"backward"})
        return
    entries = {"forward", "backward", "collect"} if kind.gradient else {"forward"}
    compiles_to_ptx(kind, SHAPES[shape], bytes_, entries)
    skips = {"collect_skips"} if kind.gradient else set()
    compiles_to_ptx(kind._replace(skips=True), SHAPES[shape], bytes_, entries | skips)


def compiles_to_ptx(kind: Kind, shape: Shape, bytes_: int, entries: set[str]) -> None:
    dtype = {4: torch.float32, 8: torch.float64}[bytes_]
    options = ["--gpu-architecture=compute_80", *kind.defines(kind.numbers(dtype), shape)]
    ptx = compile_cuda(*source(shape), options).decode()
    assert entries == {line.split()[2].split("(")[0] for line in ptx.splitlines() if line.startswith(".visible .entry")}
    assert ("f64" in ptx) or bytes_ == 4


@needs_compiler
def test_code_that_does_not_compile_is_shown() -> None:
    with pytest.raises(CudaError, match=r"broken\.cu does not compile: (?s:.*)nonsense"):
        compile_cuda("nonsense", "broken.cu", ["--gpu-architecture=compute_80"])


def test_parts_of_an_ideal() -> None:
    flat = Kind("smoothmin", contiguous=False, gradient=True).numbers(torch.float32)
    assert (flat, flat.parts, flat.kept) == (Numbers(4, smoothmin=True, contiguous=False), 2, 2)
    soft = Kind("softmin", contiguous=False, gradient=True).numbers(torch.float64)
    assert (soft.bytes, soft.parts, soft.kept) == (8, 1, 1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_the_gpu_agrees_with_the_reference() -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "gpu_check.py"
    subprocess.run([sys.executable, script, "--cases", "8"], check=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_bench_gpu_says_that_there_is_none() -> None:
    from benchmarks.gpu import bench_gpu
    from graph2vid.errors import Graph2VidError

    with pytest.raises(Graph2VidError, match="no GPU here"):
        bench_gpu()
