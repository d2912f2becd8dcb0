"""The command line: thin modules that parse arguments, call the product and print.

Every command named in ``COMMANDS`` is the function of its name in a module beside this one (``ground_command.ground``),
or the group that the module calls ``commands``. ``main`` is the one place where an error becomes a line on stderr
and an exit status:

====  ================================================================
0     done
1     not as wished: the reader of our output left, or a defect of ours
2     the request cannot be met: bad arguments, files or inputs
129   its terminal was closed (SIGHUP)
130   interrupted (Ctrl+C, SIGINT)
143   terminated (SIGTERM)
====  ================================================================
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from graph2vid import __version__
from graph2vid._processes import Terminated, end_now, ending_on_signals
from graph2vid.cli.defaults_file import defaults_of, find_defaults, tell_used
from graph2vid.cli.derived_options import use_plain_help
from graph2vid.cli.outputs import check_outputs, stdout_for_documents
from graph2vid.errors import Graph2VidError

COMMANDS = (
    *(
        "parse",
        "ground",
        "view",
        "check",
        "studio",
        "export",
        "chapters",
        "clips",
        "transfer",
        "align-text",
        "flow",
        "complexity",
    ),
    *("adapt", "batch", "evaluate", "train", "selfcheck", "demo", "cache", "doctor"),
)
"""The commands, each in a module of its name, in the order in which ``--help`` lists them."""

_NEW_OBJECTS = 50_000
"""How many new objects a command makes before it looks for garbage: a short one makes few more, and drops few."""

_RENAMED_FLAGS = {
    "--beyond": "--extended",
    "--breaking": "--violation",
    "--browser": "--open",
    "--no-browser": "--no-open",
    "--not-contiguous": "--no-contiguous",
    "--skip-steps": "--skip",
}
"""Flags of the release before, which still work, and what they are called now."""

# Newer versions of typer carry a click of their own, older ones use the installed one; this finds either.
_ClickException: type[Exception] = typer.BadParameter.__mro__[2]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graph2vid {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="On an error, show where in the code it arose (any position).")
    ] = False,
) -> None:
    """Say when each step of a procedure happens in a video, in whichever legal order the video shows."""


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the application with the command that the arguments name, or with all where they name none."""
    app = typer.Typer(name="graph2vid", no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_options)
    first = arguments[0] if arguments else ""
    for name in (first,) if first in COMMANDS else COMMANDS:
        word = name.replace("-", "_")
        module = import_module(f"graph2vid.cli.{word}_command")
        if hasattr(module, "commands"):
            app.add_typer(module.commands, name=name)
        else:
            app.command()(getattr(module, word))
    use_plain_help(app)
    return app


def _say(line: str) -> None:
    print(f"graph2vid: {' '.join(line.split())}", file=sys.stderr)


def _abandon_stdout() -> None:
    """Point stdout at nothing, so that the interpreter does not fail again when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is closed, or not a file at all
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115


def _report(error: BaseException) -> int:
    """Turn an error into one line on stderr and return the exit status."""
    status, line = 2, f"error: {error}"
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()
        return 1
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return 2
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        status, line = 130, "interrupted"
    elif isinstance(error, Terminated):
        status, line = 128 + error.number, str(error)
    elif isinstance(error, _ClickException):
        context = getattr(error, "ctx", None)
        advice = f" (see `{context.command_path} --help`)" if context is not None else ""
        line = f"error: {error.format_message().rstrip('.')}{advice}"  # type: ignore[attr-defined]
    elif isinstance(error, MemoryError):
        line = "error: out of memory; use fewer clips, or `--help` for options that need less"
    elif isinstance(error, OSError):
        line = f"error: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}"
        _abandon_stdout()
    elif not isinstance(error, Graph2VidError):
        line = f"error: {type(error).__name__}: {error} (this is a defect; `--debug` shows where it arose)"
        status = 1
    _say(line)
    return status


def _flags(command: Any) -> set[str]:
    """Return the flags of a command, and of those inside it."""
    of_inner = [_flags(inner) for inner in getattr(command, "commands", {}).values()]
    return {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}.union(*of_inner)


def _current(argument: str, known: set[str]) -> str:
    """Return an argument in which a flag of the release before has its present name, if the command has that."""
    old, equals, value = argument.partition("=")
    new = _RENAMED_FLAGS.get(old)
    if new is None or old in known or new not in known:
        return argument
    _say(f"warning: {old} is called {new} now; the old name goes away in the next release")
    return f"{new}{equals}{value}"


def _run(arguments: Sequence[str]) -> object:
    """Run the command that the arguments name, with the defaults that the user's file sets."""
    command = typer.main.get_command(build_app(arguments))
    known = _flags(command)
    arguments = [_current(argument, known) for argument in arguments]
    defaults = {}
    path = find_defaults() if {*arguments[:1]} <= {*COMMANDS} and "--help" not in arguments else None
    if path is not None:
        defaults = defaults_of(path, command, COMMANDS)
        tell_used(path, defaults, arguments)
    return command(args=arguments, prog_name="graph2vid", standalone_mode=False, default_map=defaults)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        The exit status.
    """
    is_program = arguments is None
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    if is_program:
        gc.set_threshold(_NEW_OBJECTS)
    if sys.stdout is None:  # as after `>&-`: the next file that is opened would take its place
        _say("error: standard output is closed")
        return 2
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign gets a question mark, not a crash.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with ending_on_signals(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _say(f"warning: {message}")
        warnings.filterwarnings("default", message=".* is called .* now", category=DeprecationWarning)
        try:
            arguments = [argument for argument in given if argument != "--debug"]
            check_outputs(arguments)
            with stdout_for_documents(arguments):
                status = _run(arguments)
            sys.stdout.flush()
        except BaseException as error:
            if isinstance(error, SystemExit) and not isinstance(error, Terminated):
                raise
            if debug and not isinstance(error, _ClickException | BrokenPipeError | Terminated):
                raise
            status = _report(error)
            if is_program and isinstance(error, KeyboardInterrupt | typer.Abort | Terminated):
                end_now(status)  # all is unwound, and libraries may take seconds over their own ending
            return status
    if status == 130:  # how newer versions of typer hand over an interrupt
        status = _report(KeyboardInterrupt())
        if is_program:
            end_now(status)
    if is_program:
        gc.freeze()  # the interpreter ends without looking through all modules for garbage, which takes long
    return status if isinstance(status, int) else 0
