"""The short version of the fuzzing of all readers; ``python tests/fuzzing.py`` is the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pympi")


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("fuzzing.py")), "--inputs", "600", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 defects" in done.stdout
