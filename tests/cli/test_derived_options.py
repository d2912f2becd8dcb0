"""Flags derive from classes of options; help can be read at 80 columns; graph2vid.toml sets defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from graph2vid._options import AlignOptions, CostOptions, Options, declared, option
from graph2vid.cli import COMMANDS, build_app, main
from graph2vid.cli.defaults_file import defaults_of
from graph2vid.cli.derived_options import use_plain_help, with_options


@dataclass(frozen=True)
class Output(Options, panel="Output"):
    output: Path | None = option(None, "Where to write.", short="-o", basic=True)
    names: tuple[str, ...] = option((), "What it is called.", basic=True)


@pytest.fixture
def app() -> Any:
    made = typer.Typer()

    @made.command()
    @with_options
    def solve(
        puzzle: Annotated[str, typer.Argument(help="What to solve.")],
        costs: CostOptions,
        alignment: AlignOptions,
        output: Output,
        quickly: Annotated[bool, typer.Option("--quickly", help="Do it at once.")] = False,
    ) -> None:
        """Solve a puzzle."""
        seen.append((puzzle, costs, alignment, output, quickly))

    @made.command()
    def other() -> None:
        pass

    seen: list[Any] = []
    use_plain_help(made)
    command = get_command(made)

    def run(*arguments: str, **more: Any) -> Any:
        seen.clear()
        command(args=["solve", *arguments], standalone_mode=False, **more)
        return seen[0] if seen else None

    return run


def test_the_command_is_given_the_objects(app: Any) -> None:
    flags = ["--drop", "constant:2", "--no-contiguous", "--min-clips", "3", "-o", "x", "--names", "a", "--names", "b"]
    found = app("jigsaw", *flags)
    wanted = CostOptions(drop="constant:2"), AlignOptions(contiguous=False, min_clips=3), Output(Path("x"), ("a", "b"))
    assert found == ("jigsaw", *wanted, False)
    assert app("jigsaw", "--quickly") == ("jigsaw", CostOptions(), AlignOptions(), Output(), True)


def test_defaults_of_a_file_give_way_to_the_command_line(app: Any) -> None:
    defaults = {"solve": {"contiguous": False, "gamma": 2, "names": ["a"]}}
    assert app("x", default_map=defaults)[2:4] == (AlignOptions(contiguous=False, gamma=2.0), Output(names=("a",)))
    assert app("x", "--contiguous", "--gamma", "3", default_map=defaults)[2] == AlignOptions(gamma=3.0)


def test_help_shows_what_is_basic_and_help_all_everything(app: Any, capsys: pytest.CaptureFixture[str]) -> None:
    app("--help")
    brief = capsys.readouterr().out
    assert "--output FILE" in brief and "--help-all" in brief and "--drop" not in brief
    app("--help-all")
    whole = capsys.readouterr().out
    for one in (*declared(CostOptions), *declared(AlignOptions)):
        flag = one.flag.replace("--", "--no-") if one.default is True else one.flag
        assert len(re.findall(rf"^  {flag}(?= |$)", whole, re.MULTILINE)) == 1
    assert re.findall(r"^\w.*$", whole, re.MULTILINE)[2:] == [
        "Arguments",
        "Costs",
        "Extended model",
        "Alignment",
        "Confidence",
        "Output",
        "Options",
    ]


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [leaf for name, one in inner.items() for leaf in leaves(one, (*path, name))]


LEAVES = leaves(get_command(build_app()))


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[" ".join(path) for path, _ in LEAVES])
def test_help_of_every_command_fits_80_columns_in_full(
    path: tuple[str, ...], command: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    flags = [flag for one in command.params for flag in (*one.opts, *one.secondary_opts) if flag.startswith("-")]
    assert len(flags) == len(set(flags))
    for one in command.params:
        if one.param_type_name == "option" and not one.hidden:
            assert any(
                flag in shown.split() or f"{flag}," in shown.split() for flag in (*one.opts, *one.secondary_opts)
            )


TOML = """
[ground]
clip-seconds = 2
min_clips = 3

[costs]
drop = "constant:1"

[evidence]
language = "en"

[train.features]
epochs = 3
"""


def test_a_file_of_defaults_is_read_by_command_and_by_concern(tmp_path: Path) -> None:
    (tmp_path / "graph2vid.toml").write_text(TOML)
    found = defaults_of(tmp_path / "graph2vid.toml", get_command(build_app()), COMMANDS)
    assert found["ground"] == {"drop": "constant:1", "language": "en", "clip_seconds": 2, "min_clips": 3}
    assert found["batch"] == {"drop": "constant:1", "language": "en"}
    assert found["train"]["features"]["epochs"] == 3 and found["view"] == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ground]\nclip_second = 2\n", "graph2vid.toml, [ground]: unknown key 'clip-second'; did you mean 'clip-sec"),
        ("[groun]\n", "graph2vid.toml: unknown table [groun]; did you mean 'ground'?"),
        ("clip_seconds = 2\n", "graph2vid.toml: unknown table [clip_seconds]"),
        ("ground = 2\n", "graph2vid.toml: 'ground' stands outside of a table"),
        ("[costs]\ndro = 1\n", "graph2vid.toml, [costs]: unknown key 'dro'; did you mean 'drop'?"),
        ("[ground\n", "graph2vid.toml is not TOML"),
        ("[ground]\nclip_seconds = 'x'\n", "clip-seconds"),
    ],
)
def test_what_is_wrong_with_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("graph2vid.toml").write_text(text)
    assert main(["ground", "a.txt", "b.vtt"]) == 2
    error = capfd.readouterr().err.splitlines()[-1]
    assert error.startswith("graph2vid: error: ") and message in error


def test_the_users_own_file_comes_second_and_what_is_used_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own = tmp_path / "config" / "graph2vid" / "graph2vid.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[complexity]\nmax-steps = 4\n")
    assert main(["complexity"]) == 0
    assert capfd.readouterr().err == f"graph2vid: defaults from {own}: max-steps\n"
    Path("graph2vid.toml").write_text("[complexity]\nmax-steps = 8\n")
    assert main(["complexity"]) == 0
    assert capfd.readouterr().err == "graph2vid: defaults from graph2vid.toml: max-steps\n"
    assert main(["complexity", "--max-steps", "6"]) == 0
    assert main(["complexity", "--help"]) == 0  # which a broken file does not stand in the way of
    capfd.readouterr()


@pytest.mark.parametrize(
    ("arguments", "old", "new"),
    [
        (["ground", "flow.txt", "a.vtt", "--breaking", "2"], "--breaking", "--violation"),
        (["ground", "flow.txt", "a.vtt", "--breaking=2"], "--breaking", "--violation"),
        (["studio", ".", "--token", "short", "--no-browser"], "--no-browser", "--no-open"),
    ],
)
def test_flags_of_the_release_before_work_with_a_warning(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    old: str,
    new: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    warning, error = capfd.readouterr().err.splitlines()
    assert warning == f"graph2vid: warning: {old} is called {new} now; the old name goes away in the next release"
    assert "No such option" not in error


def test_help_of_ground_is_short(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ground", "--help"]) == 0
    brief = capsys.readouterr().out
    assert len(brief.splitlines()) <= 90
    assert len(re.findall(r"^  (?:-\w, )?--[a-z-]+", brief, re.MULTILINE)) <= 16
    assert main(["ground", "--help-all"]) == 0
    whole = capsys.readouterr().out
    for heading in ("Evidence", "Costs", "Extended model", "Output"):
        assert f"\n{heading}\n" in whole


@pytest.mark.parametrize(
    "given", [["a"], ["a", "-o", "b"], ["a", "--names", "b", "--names", "c"], ["-o", "", "a"], ["a", "-o", "."], ["."]]
)
def test_plain_values_are_as_typer_makes_them(app: Any, given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = app(*given)
    monkeypatch.setattr("graph2vid.cli.derived_options._take_plain_values", lambda _: None)
    assert found == app(*given)
