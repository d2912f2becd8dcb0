"""Write the parts of the pages in docs/ that are made from the product itself: ``python docs/generated.py [--check]``.

They stand in the files, so that these can be read unbuilt, each between ``<!-- generated: WHAT -->`` and
``<!-- /generated -->``. With ``--check`` nothing is written: a part that is not current is an error. WHAT is one of

``commands``
    the reference of the command line;
``policies KIND``
    a table of the policies of a kind (match, drop, skip, repeat);
``run ARGUMENTS``
    ``graph2vid ARGUMENTS`` and what it prints, run in a folder with the files of the samples and the procedures of the
    examples;
``file PATH``
    a file of the repository: Markdown as it is, anything else as a block of code;
``table PAGE SECTION TITLE [rows="A|B"] [columns="A|B=SHOWN"]``
    a table that ``graph2vid evaluate SECTION --markdown PAGE`` wrote, or the rows and columns of it that are named; a
    row is named by the beginning of one of its first two cells, a column may be shown under another name;
``public``
    a table of the names in ``graph2vid.__all__``;
``names NAME …``
    a table of these names; where the documentation is built, their full descriptions follow (docs/hooks.py);
``options``
    tables of the options of grounding, by concern;
``native``
    a table of the files of the extension module, by the first sentence of each.
"""

from __future__ import annotations

import inspect
import os
import pydoc
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_PART = re.compile(r"(<!-- generated: (\w+) ?([^\n]*) -->\n).*?(<!-- /generated -->)", flags=re.DOTALL)


def main(arguments: list[str]) -> int:
    """Write or check all pages; return the exit status."""
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        current = filled(text)
        if current != text:
            stale.append(page.relative_to(DOCS).as_posix())
            if "--check" not in arguments:
                page.write_text(current, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"not current: {', '.join(f'docs/{name}' for name in stale)}; `make docs-text` writes them anew")
        return 1
    print(f"written: {', '.join(stale)}" if stale else "what is generated in docs/ is current")
    return 0


def filled(text: str) -> str:
    """Return a page with its generated parts made anew."""
    makers = {
        "commands": _commands,
        "policies": _policies,
        "run": _run,
        "file": _file,
        "table": _table,
        "public": _public,
        "names": _names,
        "native": _native,
        "options": _options,
    }

    def part(found: re.Match[str]) -> str:
        made = "\n".join(makers[found[2]](found[3]))
        return f"{found[1]}\n{made.strip()}\n\n{found[4]}"

    return _PART.sub(part, text)


def _file(name: str) -> Iterator[str]:
    text = (ROOT / name).read_text(encoding="utf-8").rstrip("\n")
    yield text if name.endswith(".md") else f"```text\n{text}\n```"


def _table(arguments: str) -> Iterator[str]:
    page, section, title, *chosen = shlex.split(arguments)
    asked = dict(one.split("=", 1) for one in chosen)
    text = (DOCS / page).read_text(encoding="utf-8")
    begin, end = (f"<!-- evaluate {section}: {mark} -->" for mark in ("begin", "end"))
    found = re.search(
        rf"^\*\*{re.escape(title)}\.\*\*.*?\n\n((?:\|.*\n)+)",
        text.partition(begin)[2].partition(end)[0],
        flags=re.MULTILINE,
    )
    if found is None:
        sys.exit(f"docs/{page} has no table {title!r} in the section {section!r}")
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines())
    columns = [name.partition("=") for name in asked["columns"].split("|")] if "columns" in asked else []
    if unknown := {name for name, _, _ in columns} - {*head}:
        sys.exit(
            f"docs/{page}: the table {title!r} has no column {', '.join(sorted(unknown))}; it has {', '.join(head)}"
        )
    numbers = [head.index(name) for name, _, _ in columns] or range(len(head))
    names = tuple(asked["rows"].split("|")) if "rows" in asked else ("",)
    wanted = [row for row in rows if any(_named(cell, name) for cell in row[:2] for name in names)]
    yield f"| {' | '.join(shown or name for name, _, shown in columns) or ' | '.join(head)} |"
    for row in (rule, *wanted):
        yield f"| {' | '.join(row[number] for number in numbers)} |"


def _named(cell: str, name: str) -> bool:
    return not name or cell == name or cell.startswith((f"{name} ", f"{name}:"))


def _public(_: str) -> Iterator[str]:
    import graph2vid

    return _described((name, getattr(graph2vid, name)) for name in graph2vid.__all__ if not name.startswith("_"))


def _names(arguments: str) -> Iterator[str]:
    return _described((name, pydoc.locate(name)) for name in arguments.split())


def _described(things: Iterable[tuple[str, Any]]) -> Iterator[str]:
    yield "| name | what it is |"
    yield "| --- | --- |"
    for name, thing in things:
        if thing is None:
            sys.exit(f"there is no {name}")
        meaning = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
        meaning = re.sub(r":[a-z]+:`[~.]*([^`]*)`", r"`\1`", meaning).replace("``", "`")
        yield f"| `{name}` | {_cell(meaning)} |"


def _options(_: str) -> Iterator[str]:
    from graph2vid import _options as options
    from graph2vid.cli.defaults_file import CONCERNS

    for concern, group in CONCERNS.items():
        yield from (f"## {concern.capitalize()}", "", inspect.cleandoc(group.__doc__ or ""), "")
        yield from ("| option | meaning | default |", "| --- | --- | --- |")
        for one in options.declared(group):
            default = (
                "" if one.default is None else f"`{str(one.default).lower() if one.kind is bool else one.default}`"
            )
            yield f"| `{one.name}` | {_cell(one.about.help)} | {default} |"
        yield ""


def _native(_: str) -> Iterator[str]:
    yield "| file | what it holds |"
    yield "| --- | --- |"
    for file in sorted((ROOT / "src" / "native").glob("*.?pp")):
        comment = re.match(r"(?://.*\n)+", file.read_text(encoding="utf-8"))
        text = " ".join(line.lstrip("/ ") for line in comment[0].splitlines()) if comment else ""
        yield f"| `{file.name}` | {_cell(re.split(r'(?<=[.:])  ?(?=[A-Z]|$)', text)[0].rstrip(' :'))} |"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder, kept until the end, with the files of the sample and the procedures of the examples."""
    from graph2vid.sample import FILES, NarratedFiles

    folder = tempfile.TemporaryDirectory()
    procedures = ROOT / "examples" / "procedures"
    for file in (*FILES, *NarratedFiles().all, *procedures.iterdir()):
        with open(os.path.join(folder.name, file.name), "wb") as copy:  # noqa: PTH118, PTH123
            copy.write(file.read_bytes())
    return folder


def _run(arguments: str) -> Iterator[str]:
    done = subprocess.run(
        [sys.executable, "-m", "graph2vid", *shlex.split(arguments)],
        cwd=_folder().name,
        env=os.environ | {"COLUMNS": "96", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"graph2vid {arguments}: exit {done.returncode}: {done.stderr.strip()}")
    yield "```console"
    yield f"$ graph2vid {arguments}"
    yield from (line.rstrip() for line in done.stdout.splitlines())
    yield "```"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _policies(kind: str) -> Iterator[str]:
    from graph2vid import evidence

    registry = getattr(evidence, f"{kind.upper()}_POLICIES")
    yield "| name | meaning |"
    yield "| --- | --- |"
    for name in registry:
        meaning = inspect.cleandoc(registry.get(name).__doc__ or "").replace("``", "`")
        yield f"| `{name}` | {_cell(meaning)} |"


def _commands(_: str) -> Iterator[str]:
    import typer

    from graph2vid.cli import build_app

    root = typer.main.get_command(build_app())
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        yield from _command(command, f"graph2vid {name}", level=2)


def _command(command: Any, path: str, level: int) -> Iterator[str]:
    name = path.removeprefix("graph2vid ")
    yield f"{'#' * level} {name}"
    yield ""
    yield inspect.cleandoc(command.help or "").replace("\f", "").replace("\b\n", "")
    yield ""
    inner = getattr(command, "commands", None)
    if inner:
        for name, part in inner.items():
            yield from _command(part, f"{path} {name}", level + 1)
        return
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    # Options that --help-all alone shows are hidden and have a heading; names of the release before are hidden, too.
    options = [one for one in command.params if one.param_type_name == "option" and (not one.hidden or _heading(one))]
    yield "    " + " ".join([path, *map(_argument, arguments), *(["[OPTIONS]"] if options else [])])
    yield ""
    panels: dict[str, list[str]] = {}
    for one in arguments:
        panels.setdefault("", []).append(f"| `{_argument(one)}` | {_cell(one.help or '')} | |")
    for one in options:
        names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
        row = f"| {names} | {_cell(one.help or '')} | {_default(one)} |"
        panels.setdefault(_heading(one), []).append(row)
    for panel, rows in panels.items():
        yield from [f"**{panel}**", ""] if panel else []
        yield from ["| | | default |", "| --- | --- | --- |", *rows, ""]


def _heading(option: Any) -> str:
    return getattr(option, "rich_help_panel", None) or ""


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _default(option: Any) -> str:
    value = option.default
    if value is None or value is False or value == () or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
