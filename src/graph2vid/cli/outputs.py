"""Where commands write: files by their suffix, and ``-`` for standard output, which is then free of all else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import typer

from graph2vid._files import STDOUT, write_text
from graph2vid.errors import InputError

_OPTIONS = ("-o", "--output", "--json")
_SUFFIXES = {"--json": (".json",), "--report": (".html", ".htm"), "--markdown": (".md",)}


@contextlib.contextmanager
def stdout_for_documents(arguments: Sequence[str]) -> Iterator[None]:
    """Where ``-o -`` or ``--json -`` is among the arguments, let all that is printed beside it go to stderr."""
    asked = {"-o-", "--output=-", "--json=-"} & {*arguments} or {*product(_OPTIONS, STDOUT)} & {*pairwise(arguments)}
    with contextlib.redirect_stdout(sys.stderr) if asked else contextlib.nullcontext():
        yield


def check_outputs(arguments: Sequence[str]) -> None:
    """Refuse files that cannot be written before the work begins: those of options that mean the same everywhere."""
    for option, suffixes in _SUFFIXES.items():
        for flag, value in pairwise([*arguments, ""]):
            name, equals, joined = flag.partition("=")
            if name == option and (equals or value):
                check_output(Path(joined if equals else value), option, *suffixes)


def is_stdout(path: Path | None) -> bool:
    """Say whether a path stands for standard output."""
    return path is not None and str(path) == STDOUT


def check_output(path: Path | None, option: str, *suffixes: str) -> None:
    """Refuse a file that cannot be written, or whose name says that it is what it will not be.

    A name without a suffix is fine, and so are standard output, devices and pipes.
    """
    if path is None or is_stdout(path) or (path.exists() and not path.is_file() and not path.is_dir()):
        return
    if path.is_dir():
        raise InputError(f"{option}: cannot write {path}: it is a folder")
    if path.suffix.lower() not in ("", *suffixes):
        raise InputError(f"{option} {path}: the name must end in {' or '.join(suffixes)}, which is what is written")
    if not path.parent.is_dir():
        raise InputError(f"{option}: cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{option}: cannot write {path}: the folder {path.parent} is not writable")


def save_json(path: Path | None, document: Any) -> None:
    """Write a report as JSON, if a file is named; its numbers may be larger than what graph2vid itself reads."""
    if path is not None:
        write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def tell_written(paths: Iterable[Path]) -> None:
    """Say on stderr what was written, a line for each file."""
    for path in dict.fromkeys(paths):
        if not is_stdout(path):
            typer.echo(f"wrote {path}", err=True)
