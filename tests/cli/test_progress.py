"""Progress: a bar on a terminal from the first moment, elsewhere a line now and then; never on stdout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graph2vid.cli import progress as module
from graph2vid.cli.progress import progress

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")


def is_told(capfd: pytest.CaptureFixture[str], words: str) -> bool:
    """Wait until a line with these words is on stderr, whole, and say whether it came."""
    told, limit = "", time.monotonic() + 30
    line = re.compile(rf"^graph2vid: {re.escape(words)}, \d+:\d\d so far\n", re.MULTILINE)
    while not line.search(told) and time.monotonic() < limit:
        time.sleep(0.01)
        told += capfd.readouterr().err
    return line.search(told) is not None


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.02)
    with progress("loading [b]") as tell:
        assert is_told(capfd, "loading [b]")
        tell("transcribing", 30.0, 120.0)
        assert is_told(capfd, "transcribing, 25%")
        tell("comparing")
        assert is_told(capfd, "comparing")
    capfd.readouterr()
    time.sleep(0.1)
    written = capfd.readouterr()
    assert (written.out, written.err) == ("", "")


def test_quick_work_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("loading") as tell:
        tell("transcribing", 1.0, 2.0)
    assert capfd.readouterr() == ("", "")


PROGRAM = """
from graph2vid.cli.progress import progress
with progress("loading [models]") as tell:
    input()
    tell("transcribing", 30.0, 120.0)
    input()
print("done")
"""


def test_a_bar_on_a_terminal_from_the_first_moment(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(theirs)
        shown = ""

        def until(pattern: str) -> None:
            nonlocal shown
            while not re.search(pattern, shown):
                shown += os.read(ours, 65536).decode(errors="replace")

        assert process.stdin is not None and process.stdout is not None
        until(r"loading \[models\]")  # nothing was told yet
        process.stdin.write(b"\n")
        process.stdin.flush()
        until(r"transcribing[^%]* 25%")
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.read() == b"done\n"
    os.close(ours)
