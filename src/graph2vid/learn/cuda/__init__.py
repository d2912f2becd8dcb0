"""The costs of grounding on the GPU: CUDA C++, compiled at run time."""

from __future__ import annotations

from graph2vid.learn.cuda.compiler import CudaError, Module, compile_cuda
from graph2vid.learn.cuda.cuda_automata import automata_on_gpu
from graph2vid.learn.cuda.cuda_costs import Costs, Kind, begun_on_gpu, costs_on_gpu

__all__ = ["Costs", "CudaError", "Kind", "Module", "automata_on_gpu", "begun_on_gpu", "compile_cuda", "costs_on_gpu"]
