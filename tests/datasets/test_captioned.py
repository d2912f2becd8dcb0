"""A plain folder of captioned videos."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graph2vid.cli import main
from graph2vid.datasets import captioned
from graph2vid.errors import FormatError, GraphError
from layouts import FLOW, write, write_json
from layouts import captioned as write_captioned

pytest.importorskip("wordllama", reason="needs graph2vid[text]")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_captioned(tmp_path / "data")


def test_reads_everything(root: Path) -> None:
    dataset = captioned.load(root)
    assert [(one.id, one.task, one.n_clips) for one in dataset.recordings] == [
        ("iced_tea_b", "iced_tea", 6),  # it ends with its last annotation
        ("salad_a_1", "salad", 11),
    ]
    salad, tea = dataset.tasks["salad"], dataset.tasks["iced_tea"]
    assert (salad.title, salad.steps) == ("Greek salad", ("cut the tomato", "add salt", "stir"))
    assert salad.flows["manual"].edges == ((0, 2), (1, 2))
    assert (tea.title, tea.steps, dict(tea.flows)) == ("iced tea", ("Boil water.", "Pour it over ice"), {})
    rows = [[(row.step, row.start, row.end) for row in one.annotations] for one in dataset.recordings]
    assert rows == [[(0, 1.0, 3.0), (1, 4.0, 5.5)], [(0, 1.0, 4.0), (2, 6.2, 7.5)]]
    assert (dataset.problems, dataset.remarks, dataset.splits) == ((), (), ())


def test_evidence_is_the_transcript(root: Path) -> None:
    dataset = pickle.loads(pickle.dumps(captioned.load(root, clip_seconds=2.0)))
    evidence = dataset.evidence(dataset.recording("salad_a_1"))
    assert evidence.similarity.shape == (3, 6)
    assert evidence.similarity[:, 1].argmax() == 0
    assert evidence.similarity[:, 3].argmax() == 2


def test_files_side_by_side_of_one_task(root: Path, tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    write(flat / "salad.flow", FLOW)
    for name in ("a_1", "c"):
        shutil.copy(root / "captions" / "a_1.vtt", write(flat / f"{name}.vtt", ""))
        write(flat / f"{name}.csv", "tomato,1,4\n3,6,7\n")  # a step may be called by the name in the graph
    shutil.copy(root / "durations.csv", flat)
    dataset = captioned.load(flat)
    assert [(one.id, one.task, one.n_clips) for one in dataset.recordings] == [("a_1", "salad", 11), ("c", "salad", 7)]
    assert [row.step for row in dataset.recordings[0].annotations] == [0, 2]


def test_captions_named_by_the_task_too(root: Path) -> None:
    (root / "captions" / "b.srt").rename(root / "captions" / "iced_tea_b.srt")
    recording = captioned.load(root).recording("iced_tea_b")
    assert (recording.task, recording.notes["video"]) == ("iced_tea", "iced_tea_b")


def test_annotations_in_one_document(root: Path) -> None:
    shutil.rmtree(root / "annotations")
    row = {"step": 1, "start": 1.0, "end": 4}
    stir = {"step": "stir", "start": 5, "end": 6}
    document = {
        "a_1": {"task": "salad", "duration": 8.5, "annotations": [row, stir]},
        "b": {"task": "iced_tea", "annotations": [row]},
    }
    path = write_json(root / "annotations.json", document)
    dataset = captioned.load(root)
    assert [(one.id, one.task, one.n_clips) for one in dataset.recordings] == [
        ("a_1", "salad", 9),
        ("b", "iced_tea", 4),
    ]

    del document["b"]["task"]
    write_json(path, document)
    with pytest.raises(
        FormatError, match=r"annotations.json, video b does not say which task .* there are 2 procedures"
    ):
        captioned.load(root)
    write_json(path, document | {"b": {"task": "iced_tea", "annotations": [row | {"end": None}]}})
    with pytest.raises(FormatError, match=r"video b, annotation 0: the end must be a number, not None"):
        captioned.load(root)
    write_json(path, document | {"b": {"task": "iced_tea", "annotations": []}})
    with pytest.raises(FormatError, match=r"annotations.json, video b has no annotations"):
        captioned.load(root)
    write_json(path, [])
    with pytest.raises(FormatError, match=r"annotations.json should map each video"):
        captioned.load(root)
    (root / "annotations").mkdir()
    with pytest.raises(FormatError, match=r"both hold annotations"):
        captioned.load(root)


def test_what_is_worth_knowing_is_remarked(root: Path) -> None:
    write(root / "annotations" / "salad_a_1.csv", "1,1,4\n2,3,5\n")
    shutil.copy(root / "captions" / "b.srt", root / "captions" / "x.srt")
    overlap, spare = captioned.load(root).remarks
    assert overlap.endswith("salad_a_1.csv: annotations overlap; the one that starts later wins")
    assert spare.endswith("captions: videos without annotations are left out: 1, x first")


TABLE = Path("annotations", "iced_tea_b.csv")
BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: write(root / TABLE, "boil milk,1,2\n"), r"b.csv, line 1: there is no step 'boil milk' in .*tea.txt"),
    (lambda root: write(root / TABLE, "1,1,2\n3,2,3\n"), r"b.csv, line 2: there is no step '3' in .* which has 2"),
    (lambda root: write(root / TABLE, "0,1,2\n"), "line 1: there is no step '0'"),
    (lambda root: write(root / TABLE, "1,-1,2\n"), "line 1: the annotation .* lies outside the video"),
    (lambda root: write(root / TABLE, "1,3,2\n"), "ends .* before it starts"),
    (lambda root: write(root / TABLE, "1,3\n"), "line 1: 2 fields where there should be 3"),
    (lambda root: write(root / TABLE, "1,now,2\n"), "line 1: the start must be a number"),
    (lambda root: write(root / TABLE, "step,start,end\n"), "iced_tea_b.csv has no annotations"),
    (lambda root: write(root / "durations.csv", "b,4\n"), r"line 2: .* 4 s to 5.5 s lies outside the video \(0 to 4 s"),
    (
        lambda root: (root / "captions/b.srt").unlink(),
        r"video b is annotated but has no captions: there is no .*captions/b.vtt or .srt",
    ),
    (lambda root: (root / "procedures/iced_tea.txt").unlink(), r"task iced_tea has no procedure: there is no"),
    (lambda root: write(root / "procedures/iced_tea.txt", "\n"), "iced_tea.txt has no steps"),
    (lambda root: write(root / "procedures/iced_tea.txt", "Boil\nboil!\n"), "there is no step 'boil_water'"),
    (
        lambda root: (write(root / TABLE, "boil,1,2\n"), write(root / "procedures/iced_tea.txt", "Boil\nboil!\n")),
        "2 steps of",
    ),
    (lambda root: write(root / "captions/b.srt", "1\n00:01 --> 00:02\nx\n"), "b.srt, line 2: not a cue's times"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_bad_input_is_named_or_passed_over(root: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(root)
    with pytest.raises(FormatError, match=message) as caught:
        captioned.load(root)
    dataset = captioned.load(root, skip_bad=True)
    assert dataset.problems == (str(caught.value),)
    assert [recording.id for recording in dataset.recordings] == ["salad_a_1"]


def test_a_broken_graph(root: Path) -> None:
    write(root / "procedures" / "salad.flow", "a: x\nb: y\na -> b -> a\n")
    with pytest.raises(GraphError, match=r"salad.flow.*cycle"):
        captioned.load(root)
    write(root / "procedures" / "salad.flow", "a: x\na -> c\n")
    with pytest.raises(GraphError, match=r"salad.flow, line 2"):
        captioned.load(root)


def test_what_nothing_can_go_without(root: Path) -> None:
    with pytest.raises(FormatError, match=r"nowhere is not a folder"):
        captioned.load(root / "nowhere")
    write(root / "procedures" / "salad.txt", "cut\n")
    with pytest.raises(FormatError, match=r"task salad has two procedures: .*salad.flow and salad.txt"):
        captioned.load(root)
    shutil.rmtree(root / "procedures")
    with pytest.raises(FormatError, match=r"has no procedure: there should be TASK.flow"):
        captioned.load(root)
    write(root / "procedures" / "salad.txt", "cut\n")
    shutil.rmtree(root / "annotations")
    with pytest.raises(FormatError, match=r"has no annotations: there should be"):
        captioned.load(root)
    shutil.rmtree(root / "captions")
    with pytest.raises(FormatError, match=r"has no captions: there should be VIDEO.vtt"):
        captioned.load(root)


def test_evaluated_from_the_command_line(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root / "annotations" / "salad_zz.csv", "1,1,4\n")
    figures = tmp_path / "figures.json"
    arguments = ["evaluate", "captioned", "--data", str(root), "--parsers", "none", "--json", str(figures)]
    assert main(arguments) == 2
    assert "video zz is annotated but has no captions" in capsys.readouterr().err
    assert main([*arguments, "--skip-bad"]) == 0
    assert "passed over: " in capsys.readouterr().out
    rows = {row["method"]: row for row in json.loads(figures.read_text())["rows"]}
    assert (rows["bag"]["videos"], rows["graph:manual"]["videos"]) == (2, 1)
