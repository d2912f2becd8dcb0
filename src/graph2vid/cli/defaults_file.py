"""Defaults of commands from ``graph2vid.toml``, in the working directory or else in the user's configuration directory.

A table is named after a command (``[ground]``, ``[train.features]``) or after a concern, which holds for every
command that has the option (``[procedure]``, ``[evidence]``, ``[costs]``, ``[alignment]``); a command's own table
overrules that of a concern, and the command line overrules both. A key is the name of an option without the leading
dashes.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph2vid._files import naming
from graph2vid._options import GROUND_OPTIONS, Options, current_names, declared, nearest
from graph2vid.errors import FormatError

NAME = "graph2vid.toml"

CONCERNS: dict[str, type[Options]] = dict(
    zip(("procedure", "evidence", "costs", "alignment"), GROUND_OPTIONS, strict=True)
)


def find_defaults() -> Path | None:
    """Return the file of defaults: that of the working directory, else that of the user, else None."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return next((path for path in (Path(NAME), home / "graph2vid" / NAME) if path.is_file()), None)


def defaults_of(path: Path, command: Any, all_commands: tuple[str, ...]) -> dict[str, Any]:
    """Read the defaults of commands.

    Parameters
    ----------
    path : Path
        The file.
    command : click command
        The application, with the commands that the user may have asked for.
    all_commands : tuple of str
        The names of all commands, also those that ``command`` was built without.

    Returns
    -------
    dict
        By command, then by parameter: click's ``default_map``.

    Raises
    ------
    FormatError
        The file is no TOML, or has a table or key that nothing knows; the message names file and key.
    """
    try:
        with naming(path):
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not TOML: {error}") from None
    shared: dict[str, Any] = {}
    for name, table in tables.items():
        if name not in (*CONCERNS, *all_commands):
            raise FormatError(f"{path}: unknown table [{name}]{nearest(name, (*CONCERNS, *all_commands))}")
        if not isinstance(table, dict):
            raise FormatError(f"{path}: {name!r} stands outside of a table; put it under [ground], say")
        if name in CONCERNS:
            table = _named(table, CONCERNS[name])
            _check_keys(table, [one.name for one in declared(CONCERNS[name])], f"{path}, [{name}]")
            shared |= table
    return {
        name: _of_command(inner, tables.get(name, {}), shared, f"{path}, [{name}]")
        for name, inner in command.commands.items()
    }


def _of_command(command: Any, table: dict[str, Any], shared: dict[str, Any], where: str) -> dict[str, Any]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        _check_keys(table, inner, where)
        return {
            name: _of_command(one, table.get(name, {}), shared, where[:-1] + f".{name}]") for name, one in inner.items()
        }
    table = _named(table, *CONCERNS.values())
    known = {one.name: one for one in command.params if one.param_type_name == "option" and not one.is_eager}
    _check_keys(table, known, where)
    return {name: value for name, value in (shared | table).items() if name in known}


def _named(table: dict[str, Any], *classes: type[Options]) -> dict[str, Any]:
    return current_names({name.replace("-", "_"): value for name, value in table.items()}, *classes)


def _check_keys(table: dict[str, Any], known: Any, where: str) -> None:
    for name in table:
        if name not in known:
            key, *keys = (one.replace("_", "-") for one in (name, *known))
            raise FormatError(f"{where}: unknown key {key!r}{nearest(key, keys)}")


def tell_used(path: Path, defaults: dict[str, Any], arguments: Sequence[str]) -> None:
    """Say on stderr that a file set defaults of the command that is run."""
    found: Any = defaults
    for argument in arguments:
        if not isinstance(found.get(argument), dict):
            break
        found = found[argument]
    if found is not defaults and found:
        keys = ", ".join(name.replace("_", "-") for name in found)
        print(f"graph2vid: defaults from {path}: {keys}", file=sys.stderr)
