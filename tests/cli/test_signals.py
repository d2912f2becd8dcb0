"""SIGTERM, SIGHUP and SIGINT end a command, its worker processes, and the files it was writing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ending import end_by_signal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LONG_EVALUATION = [
    *("evaluate", "synthetic", "--workers", "2", "-o", "recordings=2000", "-o", "tasks=20"),
    *("--extended", "all"),
]


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [
        (signal.SIGTERM, 143, "graph2vid: terminated\n"),
        (signal.SIGINT, 130, "graph2vid: interrupted\n"),
        (signal.SIGHUP, 129, "graph2vid: terminated: the terminal was closed\n"),
    ],
)
def test_evaluate_ends_with_its_workers(number: signal.Signals, status: int, line: str) -> None:
    ended = end_by_signal(LONG_EVALUATION, ready=lambda processes: len(processes) >= 3, number=number)
    assert ended.processes >= 3
    assert (ended.status, ended.stderr) == (status, line)


def test_doctor_ends_with_what_it_tries() -> None:
    ended = end_by_signal(["doctor"], ready=lambda processes: len(processes) >= 2)
    assert (ended.status, ended.stderr) == (143, "graph2vid: terminated\n")


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [(signal.SIGTERM, 143, "graph2vid: terminated\n"), (signal.SIGINT, 130, "graph2vid: interrupted\n")],
)
def test_train_features_ends_at_once(tmp_path: Path, number: signal.Signals, status: int, line: str) -> None:
    pytest.importorskip("torch", reason="needs graph2vid[learn]")
    pytest.importorskip("safetensors", reason="needs graph2vid[learn]")
    folder = tmp_path / "features"
    arguments = [
        "train",
        "features",
        "--dataset",
        "synthetic",
        "--epochs",
        "10000",
        "--patience",
        "0",
        "-o",
        str(folder),
    ]
    ended = end_by_signal(arguments, ready=lambda _: any(folder.glob("*.safetensors")), number=number)
    assert (ended.status, ended.stderr) == (status, line)
    assert ended.seconds < 0.5  # torch alone takes longer to end the usual way
    assert not [path for path in folder.rglob("*") if ".part" in path.name]


def ended_by(code: str, *numbers: signal.Signals) -> tuple[int, str]:
    """Run a program that says when it is in the middle of a command, send it signals, and return how it ended."""
    head = """
        import os, sys, time, typer
        from graph2vid import cli

        def command(action):
            app = typer.Typer(pretty_exceptions_enable=False)
            app.callback()(lambda: None)
            app.command("act")(lambda: action())
            cli.build_app = lambda *_: app
            raise SystemExit(cli.main(["act"]))

        def ready():
            print("ready", flush=True)
    """
    program = textwrap.dedent(head) + textwrap.dedent(code)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
        return process.returncode, stderr


def test_files_under_way_are_removed(tmp_path: Path) -> None:
    code = f"""
        from graph2vid._files import write_bytes

        def sync(_):
            ready()
            time.sleep(60)

        os.fsync = sync
        command(lambda: write_bytes({str(tmp_path / "result.json")!r}, b"long"))
    """
    assert ended_by(code, signal.SIGTERM) == (143, "graph2vid: terminated\n")
    assert not list(tmp_path.iterdir())


def test_a_command_that_does_not_listen_is_ended_all_the_same() -> None:
    code = """
        def deaf():
            ready()
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    pass

        command(deaf)
    """
    assert ended_by(code, signal.SIGTERM) == (143, "graph2vid: terminated\n")


def test_what_is_ignored_stays_ignored() -> None:
    code = """
        import signal

        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

        def act():
            ready()
            time.sleep(1)

        command(act)
    """
    assert ended_by(code, signal.SIGHUP) == (0, "")


def test_workers_end_when_their_parent_is_killed() -> None:
    ended = end_by_signal(LONG_EVALUATION, ready=lambda processes: len(processes) >= 3, number=signal.SIGKILL)
    assert ended.status == -signal.SIGKILL
