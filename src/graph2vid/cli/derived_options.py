"""Flags of commands, derived from classes of options; which were given; and help that can be read at 80 columns."""

from __future__ import annotations

import inspect
import os
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from graph2vid._options import GROUND_OPTIONS, Declared, GroundOptions, Options, declared
from graph2vid.errors import InputError, MissingDependencyError

HELP_ALL = "help_all"
_WIDEST = 100
_LEFT = 24  # columns of the names of options; the help of a longer one begins in the next line


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for each option of the classes among its parameters' annotations.

    The command is called with objects of these classes. Options that are not ``basic`` are shown by ``--help-all``
    alone, which is added where there are some::

        @with_options
        def ground(video: Annotated[Path, typer.Argument()], options: GroundOptions, output: OutputOptions) -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type[Options], ...]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint: Any = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, Options | GroundOptions):
            groups[parameter.name] = GROUND_OPTIONS if hint is GroundOptions else (hint,)  # type: ignore[assignment]
            parameters += [_parameter(one, cls.panel) for cls in groups[parameter.name] for one in declared(cls)]
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
    if not all(one.about.basic for classes in groups.values() for cls in classes for one in declared(cls)):
        parameters.append(_HELP_ALL)

    @wraps(command)
    def run(**given: Any) -> Any:
        given.pop(HELP_ALL, None)
        for name, classes in groups.items():
            values = {one.name: given.pop(one.name) for cls in classes for one in declared(cls)}
            given[name] = hints[name].from_mapping(values)
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(one: Declared, panel: str) -> inspect.Parameter:
    """Return an option as the parameter that typer makes a flag of."""
    about, default = one.about, one.default
    off = f"{one.flag}/--no-{one.flag[2:]}"
    names = [off] if default is True else [one.flag, about.short] if about.short else [one.flag]
    kind: Any = one.kind if one.kind is not object else str
    details = typer.Option(
        *names,
        help=about.off or about.help,
        metavar=None if kind is bool else one.metavar,
        hidden=not about.basic,
        rich_help_panel=about.panel or panel,
        show_default=default not in (None, "", ()) and kind is not bool,
        min=about.least,
        max=about.most,
    )
    if one.many:
        kind, default = list[kind] | None, None
    elif default is None:
        kind = kind | None
    return _keyword(one.name, default, Annotated[kind, details])


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


_ASKED = typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show every option and exit.")
_HELP_ALL = _keyword(HELP_ALL, False, Annotated[bool, _ASKED])


# -- what was given ----------------------------------------------------------------------------------------------


def given(context: typer.Context, *names: str) -> list[str]:
    """Return the flags of those parameters that the user gave, whatever their values."""
    flags = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT"):
            off = context.params.get(parameter.name) is False and parameter.secondary_opts
            flags.append(max(parameter.secondary_opts if off else parameter.opts, key=len))
    return flags


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse those parameters that the user gave: they would be accepted and ignored.

    Parameters
    ----------
    context : Context
        Of the command.
    names : iterable of str
        Parameters of the command's function.
    why : str
        Why they change nothing here, and what to do.
    """
    if flags := given(context, *names):
        raise InputError(f"{' and '.join(flags)} {'are' if len(flags) > 1 else 'is'} of no use here: {why}")


@contextmanager
def needing_torch(what: str) -> Iterator[None]:
    """Say in one line that something needs torch, where an import shows that it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("torch", "safetensors"):
            raise MissingDependencyError(f"{what} needs torch", extra="learn") from error
        raise


def _take_plain_values(parameter: Any) -> None:
    """Let a parameter convert words, paths and its default itself: newer versions of typer load pydantic for that."""
    kind: Any = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)  # of older versions: None
    is_list = get_origin(kind) is list
    inner = get_args(kind)[0] if is_list else kind
    if inner not in (str, Path, int, float, bool) or "process_value" in vars(parameter):
        return
    convert = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        values = [value] if isinstance(value, str) else value
        if not parameter.required and (value is None or value is parameter.default):
            found = value
        elif inner in (str, Path) and is_list != isinstance(value, str) and values and all(map(_is_plain, values)):
            found = [*map(inner, values)] if is_list else inner(value)
        else:
            return convert(context, value)
        return found if parameter.callback is None else parameter.callback(context, parameter, found)

    parameter.process_value = process_value


def _is_plain(value: Any) -> bool:
    """Say whether a value is words, or a path that typer would not refuse: of a file that can be read, or of none."""
    return isinstance(value, str) and (os.access(value, os.R_OK) or not os.path.lexists(value))


# -- help ----------------------------------------------------------------------------------------------------


class _Plain:
    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            _take_plain_values(one)
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(_help_of(self, ctx))


class Command(_Plain, TyperCommand):
    """A command whose help lists its options under headings, in full at any width."""


class Group(_Plain, TyperGroup):
    """A group of commands with the same kind of help."""


def use_plain_help(app: typer.Typer) -> None:
    """Let all commands of an application show their help in this way."""
    app.info.cls = Group
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            use_plain_help(group.typer_instance)


def _help_of(command: Any, context: Any) -> str:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.get_params(context) if one.param_type_name == "option" and not one.hidden]
    inner = [(name, one) for name, one in getattr(command, "commands", {}).items() if not one.hidden]
    usage = [context.command_path, *map(_argument, arguments), "[OPTIONS]", *(["COMMAND …"] if inner else [])]
    lines = [f"Usage: {' '.join(usage)}"]
    for paragraph in inspect.cleandoc(command.help or "").split("\f")[0].split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph.replace("\b", ""), width, break_on_hyphens=False)]
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": [(_argument(one), one.help or "") for one in arguments]}
    for one in options:
        panel = getattr(one, "rich_help_panel", None) or "Options"
        panels.setdefault(panel, []).append((_names(one), _meaning(one)))
    panels["Commands"] = [(name, (one.help or "").split("\n\n")[0]) for name, one in inner]
    panels["Options"] = panels.pop("Options", [])  # after those that have a heading of their own
    for panel, rows in panels.items():
        if rows:
            lines += ["", typer.style(panel, bold=True), *_table(rows, width)]
    return "\n".join(lines) + "\n"


def _argument(one: Any) -> str:
    name = one.metavar or (one.name or "").upper()
    return name if one.required or name.startswith("[") else f"[{name}]"


def _names(one: Any) -> str:
    """Return the flags of an option, the spelling that changes something first, and what stands for its value."""
    flags = sorted(one.secondary_opts if one.default is True and one.secondary_opts else one.opts, key=len)
    value = "" if getattr(one, "is_flag", False) else f" {one.metavar or 'VALUE'}"
    return ", ".join(flags) + value


def _meaning(one: Any) -> str:
    default = one.default
    is_shown = default is not None and not isinstance(default, bool | list | tuple) and not callable(default)
    return f"{one.help or ''}{f' [{default}]' if is_shown and getattr(one, 'show_default', False) else ''}".strip()


def _table(rows: list[tuple[str, str]], width: int) -> list[str]:
    left = min(max(len(name) for name, _ in rows), _LEFT) + 4
    lines = []
    for name, meaning in rows:
        wrapped = textwrap.wrap(" ".join(meaning.split()), width - left, break_on_hyphens=False) or [""]
        if len(name) > left - 4:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{left - 2}}{wrapped.pop(0)}")
        lines += [" " * left + line for line in wrapped]
    return lines
