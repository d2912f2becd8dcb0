"""Flags of commands, derived from classes of options; and help that can be read at 80 columns."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from graph2vid._options import Declared, Options, declared

HELP_ALL = "help_all"
_WIDEST = 100
_LEFT = 24  # columns of the names of options; the help of a longer one begins in the next line


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for each option of the classes among its parameters' annotations.

    The command is called with objects of these classes. Options that are not ``basic`` are shown by ``--help-all``
    alone, which is added where there are some::

        @with_options
        def ground(video: Annotated[Path, typer.Argument()], costs: CostOptions, output: OutputOptions) -> None: ...
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Options]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, Options):
            groups[parameter.name] = hint
            parameters += [_parameter(one, hint.panel) for one in declared(hint)]
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
    if not all(one.about.basic for group in groups.values() for one in declared(group)):
        parameters.append(_HELP_ALL)

    @wraps(command)
    def run(**given: Any) -> Any:
        given.pop(HELP_ALL, None)
        for name, group in groups.items():
            values = {one.name: given.pop(one.name) for one in declared(group)}
            given[name] = group.from_mapping({key: value for key, value in values.items() if value is not None})
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(one: Declared, panel: str) -> inspect.Parameter:
    """Return an option as the parameter that typer makes a flag of."""
    about = one.about
    names = [one.flag, *([about.short] if about.short else [])]
    if one.kind is bool and one.default is True:
        names = [f"{one.flag}/--no-{one.flag[2:]}"]
    kind: Any = one.kind if one.kind is not object else str
    shown = one.default not in (None, "", ()) and one.kind is not bool
    details = typer.Option(
        *names,
        help=about.off or about.help,
        metavar=None if one.kind is bool else one.metavar,
        hidden=not about.basic,
        rich_help_panel=about.panel or panel,
        show_default=shown,
        min=about.least if one.kind in (int, float) else None,
        max=about.most if one.kind in (int, float) else None,
    )
    default = one.default
    if one.many:
        kind, default = list[kind] | None, None
    elif default is None:
        kind = kind | None
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, details]
    )


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    HELP_ALL,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show every option and exit.")
    ],
)


# -- help ----------------------------------------------------------------------------------------------------


class Command(TyperCommand):
    """A command whose help lists its options under headings, in full at any width."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(_help_of(self, ctx))


class Group(TyperGroup):
    """A group of commands with the same kind of help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(_help_of(self, ctx))


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
    panels: dict[str, list[tuple[str, str]]] = {}
    for one in arguments:
        panels.setdefault("Arguments", []).append((_argument(one), one.help or ""))
    for one in options:
        panel = getattr(one, "rich_help_panel", None) or "Options"
        panels.setdefault(panel, []).append((_names(one), _meaning(one)))
    for name, one in inner:
        panels.setdefault("Commands", []).append((name, (one.help or "").split("\n\n")[0]))
    if "Options" in panels:  # after those that have a heading of their own
        panels["Options"] = panels.pop("Options")
    for panel, rows in panels.items():
        lines += ["", typer.style(panel, bold=True), *_table(rows, width)]
    return "\n".join(lines) + "\n"


def _argument(one: Any) -> str:
    name = one.metavar or (one.name or "").upper()
    return name if one.required or name.startswith("[") else f"[{name}]"


def _names(one: Any) -> str:
    """Return the flags of an option, the spelling that changes something first, and what stands for its value."""
    flags = one.secondary_opts if one.default is True and one.secondary_opts else one.opts
    flags = sorted(flags, key=len)
    value = "" if getattr(one, "is_flag", False) else f" {one.metavar or 'VALUE'}"
    return ", ".join(flags) + value


def _meaning(one: Any) -> str:
    default = one.default
    is_shown = default is not None and not isinstance(default, bool | list | tuple) and not callable(default)
    return f"{one.help or ''}{f' [{default}]' if is_shown and getattr(one, 'show_default', False) else ''}".strip()


def _table(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    rows = list(rows)
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
