"""Speed, memory and accuracy of graph2vid: ``python -m benchmarks NAME``. Not part of the wheel."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if find_spec("graph2vid") is None:  # on a machine where nothing can be installed
    sys.path.insert(0, str(ROOT / "src"))
