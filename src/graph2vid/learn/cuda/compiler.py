"""CUDA C++ at run time: NVRTC compiles it, the driver loads and launches it. Nothing but ctypes is needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from graph2vid.errors import Graph2VidError


class CudaError(Graph2VidError):
    """CUDA is not there, or refused."""


def _candidates() -> Iterator[str]:
    """Yield where NVRTC may lie: in the packages that torch brings, or where the system looks."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        yield from sorted((str(path) for path in Path(folder).glob("*/lib/libnvrtc.so.*")), reverse=True)
    yield from (f"libnvrtc.so.{major}" for major in (13, 12))


@cache
def nvrtc() -> ctypes.CDLL:
    """Return the compiler; a `CudaError` says that there is none."""
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise CudaError("NVRTC, which compiles CUDA kernels, is not installed (pip install nvidia-cuda-nvrtc)")


def compile_cuda(source: str, name: str, options: Sequence[str]) -> bytes:
    """Return machine code, or PTX where the options ask for a virtual architecture (``compute_90``).

    Parameters
    ----------
    source, name : str
        The code, and what messages call it.
    options : sequence of str
        As for ``nvcc``: ``--gpu-architecture=sm_90``, ``-DNAME=1``.
    """
    library = nvrtc()
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), given):
            log = _read(library, program, "ProgramLog").decode(errors="replace")
            raise CudaError(f"{name} does not compile: {log}")
        virtual = any("compute_" in option for option in options)
        return _read(library, program, "PTX" if virtual else "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CudaError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


@cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CudaError("there is no CUDA driver on this machine") from error


def _call(name: str, *arguments: object) -> None:
    """Call the driver; a `CudaError` says why it refused."""
    _refuse(name, getattr(_driver(), name)(*arguments))


def _refuse(name: str, status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise CudaError(f"{name}: {(text.value or b'unknown error').decode()}")


class Module:
    """Loaded machine code, for the device whose context is current."""

    MOST_SHARED_WITHOUT_ASKING = 48 * 1024
    _MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

    def __init__(self, code: bytes) -> None:
        self.context = ctypes.c_void_p()
        _call("cuCtxGetCurrent", ctypes.byref(self.context))
        self._handle = ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(self._handle), code)
        self._shared: dict[str, int] = {}

    def kernel(self, name: str, threads: int, shared: int = 0, across: int = 1) -> Kernel:
        """Return a kernel whose blocks have so many threads and bytes of shared memory, ``across`` of them in y."""
        function = ctypes.c_void_p()
        _call("cuModuleGetFunction", ctypes.byref(function), self._handle, name.encode())
        if shared > self._shared.get(name, self.MOST_SHARED_WITHOUT_ASKING):
            _call("cuFuncSetAttribute", function, self._MAX_DYNAMIC_SHARED, shared)
            self._shared[name] = shared
        return Kernel(self, function, (across, 1, threads, 1, 1, shared))


class _Launch(ctypes.Structure):
    """``CUlaunchConfig``: blocks and threads in x, y, z."""

    _fields_ = (
        *((name, ctypes.c_uint * 3) for name in ("blocks", "threads")),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class Kernel:
    """A function of a module, to be launched often: what stays the same is looked up once."""

    _NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
    _PLACES = tuple(ctypes.c_void_p * count for count in range(4))

    def __init__(self, module: Module, function: ctypes.c_void_p, sizes: tuple[int, ...]) -> None:
        self._module, self._function, self._sizes, self._start = module, function, sizes, _driver().cuLaunchKernelEx
        self._launches: dict[tuple[int, int], _Launch] = {}

    def launch(self, blocks: int, stream: int, *arguments: ctypes._SimpleCData[int] | ctypes.Structure) -> None:
        """Start so many blocks on a stream."""
        launch = self._launches.get((blocks, stream))
        if launch is None:
            across, deep, *threads, shared = self._sizes
            launch = self._launches[blocks, stream] = _Launch((blocks, across, deep), tuple(threads), shared, stream)
        places = self._PLACES[len(arguments)](*map(ctypes.addressof, arguments))
        given = (ctypes.byref(launch), self._function, places, None)
        status = self._start(*given)
        if status == self._NO_CONTEXT:  # a thread of torch's that is new to the driver
            _call("cuCtxSetCurrent", self._module.context)
            status = self._start(*given)
        if status:
            _refuse("cuLaunchKernelEx", status)
