"""Options that were given on the command line, and refusing those that would change nothing."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from graph2vid.errors import InputError


def given(context: typer.Context, *names: str) -> list[str]:
    """Return the flags of those parameters that the user gave, whatever their values."""
    flags = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT"):
            value = context.params.get(parameter.name)
            off = value is False and parameter.secondary_opts
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
    flags = given(context, *names)
    if flags:
        raise InputError(f"{' and '.join(flags)} {'are' if len(flags) > 1 else 'is'} of no use here: {why}")
