"""The command line: exit statuses, and errors in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

import graph2vid
from graph2vid import cli
from graph2vid.errors import InputError


def app_that(action: Callable[[], object]) -> Callable[..., typer.Typer]:
    """Return a stand-in for `cli.build_app` with one command, ``act``."""

    def build(*_: object) -> typer.Typer:
        app = typer.Typer(pretty_exceptions_enable=False)
        app.callback()(lambda: None)

        @app.command()
        def act() -> None:
            action()

        return app

    return build


def raising(error: BaseException) -> Callable[[], object]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("step 3\nis not there"), 2, "graph2vid: error: step 3 is not there"),
        (KeyboardInterrupt(), 130, "graph2vid: interrupted"),
        (MemoryError(), 2, "graph2vid: error: out of memory"),
        (OSError(28, "No space left on device", "result.json"), 2, "result.json: No space left on device"),
        (ZeroDivisionError("division by zero"), 1, "ZeroDivisionError: division by zero (this is a defect"),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    status: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "build_app", app_that(raising(error)))
    monkeypatch.setattr(cli, "_abandon_stdout", lambda: None)
    assert cli.main(["act"]) == status
    written = capfd.readouterr().err
    assert line in written
    assert written.count("\n") == 1


def test_debug_lets_the_error_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "build_app", app_that(raising(InputError("no"))))
    with pytest.raises(InputError):
        cli.main(["act", "--debug"])
    with pytest.raises(InputError):
        cli.main(["--debug", "act"])


def test_exit_status_of_a_command_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "build_app", app_that(raising(typer.Exit(3))))
    assert cli.main(["act"]) == 3


def test_warnings_are_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    import warnings

    monkeypatch.setattr(cli, "build_app", app_that(lambda: warnings.warn("this is slow", stacklevel=1)))
    assert cli.main(["act"]) == 0
    assert capfd.readouterr().err == "graph2vid: warning: this is slow\n"


def test_usage_errors_name_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--nonsense"]) == 2
    written = capfd.readouterr().err
    assert "--nonsense" in written
    assert "`graph2vid doctor --help`" in written
    assert written.count("\n") == 1
    assert cli.main(["nonsense"]) == 2


def test_version_and_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capfd.readouterr().out == f"graph2vid {graph2vid.__version__}\n"
    assert cli.main(["--help"]) == 0
    listed = capfd.readouterr().out
    for command in cli.COMMANDS:
        assert f" {command} " in listed
    assert cli.main([]) == 2


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    assert f"graph2vid {command}" in capfd.readouterr().out


def test_reader_that_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "graph2vid", "complexity", "--threads", "2,2"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "graph2vid", "complexity", "--threads", "2,2"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "graph2vid: error: No space left on device\n"


def test_signs_that_the_terminal_cannot_show_do_no_harm() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "graph2vid", "complexity", "--threads", "2,2"]
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
