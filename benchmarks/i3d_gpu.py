"""I3D on a GPU beside the CPU: ``python benchmarks/i3d_gpu.py [WEIGHTS.safetensors]``; needs torch and numpy alone.

WEIGHTS is the file that graph2vid keeps in its cache once ``--frames i3d`` was used (``i3d-….safetensors``), in single
or half precision; without it the weights are random ones, which take as long. Prints by how much the features of moving
pictures differ between CPU and GPU, in single and in half precision, how large they are, and how many windows of 16
frames are embedded in a second.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

NETWORK = Path(__file__).parents[1] / "src" / "graph2vid" / "evidence" / "embed" / "i3d_network.py"


def network(weights: Path | None) -> Any:
    """Load the network without the rest of graph2vid."""
    spec = importlib.util.spec_from_file_location("i3d_network", NETWORK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    made: Any = module.I3D()
    if weights is None:
        return made.eval()
    data = weights.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__")
    tensors = {}
    for name, about in header.items():
        first, last = (start + offset for offset in about["data_offsets"])
        array = np.frombuffer(data[first:last], dtype={"F32": "<f4", "F16": "<f2"}[about["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(about["shape"]).astype(np.float32))
    made.load_state_dict(tensors, strict=False)
    return made.eval()


def moving(windows: int) -> NDArray[np.float32]:
    """Return pictures in which a pattern moves, each window in its own direction; [B, 3, 16, 224, 224] in -1 … 1."""
    random = np.random.default_rng(0)
    pattern = random.random((3, 56, 56)).repeat(8, axis=1).repeat(8, axis=2)[:, :448, :448]
    videos = np.empty((windows, 3, 16, 224, 224), dtype=np.float32)
    for window in range(windows):
        dx, dy = random.integers(-6, 7, 2)
        for time in range(16):
            x, y = 112 + dx * time, 112 + dy * time
            videos[window, :, time] = 2 * pattern[:, y : y + 224, x : x + 224] - 1
    return videos


def main() -> None:
    """Compare and measure."""
    model, videos = network(Path(sys.argv[1]) if len(sys.argv) > 1 else None), torch.from_numpy(moving(8))
    with torch.inference_mode():
        began = perf_counter()
        slow = model.features(videos)
        print(f"CPU ({torch.get_num_threads()} threads): {len(videos) / (perf_counter() - began):.1f} windows/s")
        print(f"features: mean {slow.mean():.3f}, largest {slow.max():.3f}")
        exact = copy.deepcopy(model).double().features(videos[:2].double())
        print(f"largest difference of single from double precision on the CPU {(exact - slow[:2]).abs().max():.1e}")
        if not torch.cuda.is_available():
            print("no GPU: nothing to compare with")
            return
        print(torch.cuda.get_device_name(0))
        for name, precision in (("single precision", torch.float32), ("half precision", torch.float16)):
            fast = model.to("cuda", precision, memory_format=torch.channels_last_3d)
            there = videos.to("cuda", precision)
            off = fast.features(there).float().cpu() - slow
            relative = off.norm() / slow.norm()
            print(f"{name}: largest difference from the CPU {off.abs().max():.1e}, relative {relative:.1e}")
            print(f"{name}: windows/s {', '.join(speed(fast, there, batch) for batch in (1, 8, 32, 128))}", flush=True)


def speed(model: Any, videos: torch.Tensor, batch: int) -> str:
    """Return how many windows a second are embedded in batches of one size: the median of 20."""
    several = videos.repeat(-(-batch // len(videos)), 1, 1, 1, 1)[:batch].contiguous()
    times = []
    for turn in range(25):
        torch.cuda.synchronize()
        began = perf_counter()
        model.features(several)
        torch.cuda.synchronize()
        if turn >= 5:
            times.append(perf_counter() - began)
    return f"{batch / statistics.median(times):.0f} in batches of {batch}"


if __name__ == "__main__":
    main()
