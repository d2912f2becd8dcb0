"""Run ``graph2vid bench gpu`` where only torch and numpy are installed.

python benchmarks/gpu.py [OUTPUT] [CASE,…]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from graph2vid.bench.gpu import bench_gpu


def main() -> None:
    """Measure, and write OUTPUT.json and OUTPUT.md."""
    output = Path(sys.argv[1] if len(sys.argv) > 1 else "gpu")
    report = bench_gpu(sys.argv[2].split(",") if len(sys.argv) > 2 else None, progress=print)
    output.with_suffix(".json").write_text(json.dumps(report.to_json(), indent=1))
    output.with_suffix(".md").write_text(report.to_markdown())
    print(report.to_markdown())


if __name__ == "__main__":
    main()
