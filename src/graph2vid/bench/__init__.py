"""How fast graph2vid is on this machine: beside two floors, and beside other packages."""

from __future__ import annotations

from graph2vid.bench.align import bench_align
from graph2vid.bench.batch import bench_batch
from graph2vid.bench.gpu import bench_gpu
from graph2vid.bench.peers import bench_peers
from graph2vid.bench.report import Report
from graph2vid.bench.soft import bench_soft
from graph2vid.bench.timing import Effort
from graph2vid.bench.tsort import bench_tsort

__all__ = ["Effort", "Report", "bench_align", "bench_batch", "bench_gpu", "bench_peers", "bench_soft", "bench_tsort"]
