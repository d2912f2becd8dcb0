"""``graph2vid export``, and ``--export`` and ``--corrections`` of ``graph2vid ground``."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from found import make_grounding
from graph2vid.cli import main
from graph2vid.cli.export_command import export as cli_export
from graph2vid.export import FORMATS
from graph2vid.grounding import Grounding


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "salad.flow").write_text("a: cut\nb: wash\nc: mix\na, b -> c\n", encoding="utf-8")
    scores = np.zeros((3, 40))
    scores[0, 12:20] = scores[1, :10] = scores[2, 25:] = 5.0
    np.save(tmp_path / "scores.npy", scores)
    return tmp_path


def test_to_the_terminal_and_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_grounding([-1] * 15 + [0] * 20 + [1] * 20).save(folder / "r.json")
    assert main(["export", "r.json", "--to", "youtube"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "0:00 Intro\n0:15 wash\n0:35 cut\n" and shown.err.startswith('note: an "Intro" is added')
    assert main(["export", "r.json", "--to", "schema-org", "-o", "v.jsonld", "--video", "https://a.b/c"]) == 0
    assert "https://a.b/c?t=15" in (folder / "v.jsonld").read_text(encoding="utf-8")
    assert capsys.readouterr().out == "wrote v.jsonld\n"


def test_every_format_stands_in_the_help_and_in_the_documentation() -> None:
    (option,) = get_type_hints(cli_export, include_extras=True)["to"].__metadata__
    page = (Path(__file__).parent.parent.parent / "docs" / "guides" / "exports.md").read_text(encoding="utf-8")
    assert set(option.help.rstrip(".").split(", ")) == set(FORMATS)
    for name in FORMATS:
        assert f"| `{name}` | `{FORMATS.get(name).suffix}` |" in page


def test_bad_requests_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_grounding([0]).save(folder / "r.json")
    for arguments, message in (
        (["export", "r.json", "--to", "doc"], "unknown export format 'doc'"),
        (["export", "none.json", "--to", "vtt"], "none.json"),
        (["export", "r.json", "--to", "label-studio", "--frame-rate", "-1"], "frame rate"),
        (["export", "r.json", "--to", "youtube", "-o", "y.txt"], "YouTube wants at least 3"),
        (["export", "r.json", "--to", "csv", "-o", "y.srt"], "-o y.srt: the name must end in .csv"),
        (["ground", "salad.flow", "--scores", "scores.npy", "--export", "vtt,doc", "-o", "o.json"], "unknown export"),
        (["ground", "salad.flow", "--scores", "scores.npy", "--corrections", "c.txt"], "read from .eaf"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == {"r.json", "salad.flow", "scores.npy"}


def test_ground_writes_exports_beside_its_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    arguments = ["ground", "salad.flow", "--scores", "scores.npy", "--match", "raw", "--drop", "constant:-1"]
    assert main([*arguments, "-o", "out/r.json", "--export", "vtt, csv,vtt,crosstask"]) == 0
    assert {path.name for path in (folder / "out").iterdir()} == {
        "r.json",
        "r.chapters.vtt",
        "r.steps.csv",
        "r.crosstask.csv",
    }
    assert "wrote out/r.chapters.vtt" in capsys.readouterr().err
    assert main([*arguments, "--export", "srt"]) == 0
    assert (folder / "salad.steps.srt").exists()


def test_one_refused_format_does_not_keep_the_others_from_being_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ground", "salad.flow", "--scores", "scores.npy", "--match", "raw", "--drop", "constant:-1"]
    assert main([*arguments, "--clip-seconds", "0.5", "-o", "r.json", "--export", "youtube,srt"]) == 2
    assert "not exported: youtube: YouTube wants" in capsys.readouterr().err
    assert (folder / "r.json").exists() and (folder / "r.steps.srt").exists()


def test_corrections_are_kept(folder: Path) -> None:
    (folder / "c.csv").write_text("text,start,end\nwash,3,6\n", encoding="utf-8")
    arguments = ["ground", "salad.flow", "--scores", "scores.npy", "--match", "raw", "--drop", "constant:-1"]
    assert main([*arguments, "--corrections", "c.csv", "-o", "r.json"]) == 0
    (segment,) = Grounding.load(folder / "r.json").segments_of("b")
    assert (segment.start, segment.end) == (3.0, 6.0)
