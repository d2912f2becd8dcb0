"""One service: Python and the command line give the same bytes, complete when they leave it."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graph2vid as g2v
from graph2vid._options import GROUND_OPTIONS, declared
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.evidence import Cue, Transcript, read_captions
from graph2vid.grounding import Grounding, OrderCheck
from graph2vid.sample import NarratedFiles
from graph2vid.text import procedure_from_text

FILES = NarratedFiles()
STEPS = "1. Cut the tomatoes.\n2. Boil the eggs.\n3. Mix the salad.\n"
SHELF = "1. Saw the board.\n2. Sand the edges.\n3. Screw the bracket to the wall.\n"
SAID = Transcript(
    (
        Cue(6.0, 9.0, "first I boil two eggs for eight minutes"),
        Cue(12.0, 16.5, "then I cut the tomatoes into small pieces"),
        Cue(20.0, 23.0, "and now we mix the salad"),
    ),
    30.0,
    "a friend",
)
SCORES = np.repeat(np.eye(3) * 5.0, 3, axis=1)
BAG = g2v.FlowGraph.bag(["a", "b", "c"])


def test_the_options_are_keyword_arguments() -> None:
    names = inspect.signature(g2v.ground).parameters
    assert {one.name for cls in GROUND_OPTIONS for one in declared(cls)} <= names.keys()
    with pytest.raises(InputError, match="unknown option 'clip_second'; did you mean 'clip_seconds'"):
        g2v.ground(BAG, scores=SCORES, clip_second=2.0)
    with pytest.warns(DeprecationWarning, match="'breaking' is called 'violation' now"):
        g2v.ground(BAG, scores=SCORES, breaking=2.0)


def test_the_readme_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faster_whisper", reason="needs graph2vid[media]")
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    monkeypatch.chdir(tmp_path)
    for path in (FILES.text, FILES.video):
        shutil.copy(path, path.name)
    found = g2v.ground("spaghetti.txt", "spaghetti.mp4")
    assert str(found).startswith("Grounding('Spaghetti with garlic bread', 10 of 10 steps shown, 0:00.0–1:43.0")
    assert found.video == "spaghetti.mp4" and found.cues
    assert found.options["narration"]["source"] == "speech recognition (tiny.en)"
    assert found.options["narration"]["plausibility"] > 0.5
    found.save("python.json")
    assert main(["ground", "spaghetti.txt", "spaghetti.mp4", "-o", "cli.json"]) == 0
    assert Path("python.json").read_bytes() == Path("cli.json").read_bytes()


CASES: list[tuple[list[str], dict[str, Any]]] = [
    (["--clip-seconds", "2", "--no-confidence"], {"clip_seconds": 2.0, "confidence": False}),
    (["--preset", "paper"], {"preset": "paper"}),
    (
        ["--match", "raw", "--drop", "percentile:20", "--skip", "auto"],
        {"match": "raw", "drop": "percentile:20", "skip": "auto"},
    ),
    (["--no-contiguous", "--gamma", "2"], {"contiguous": False, "gamma": 2.0}),
    (["--repeat", "8", "--min-clips", "2", "--margins"], {"repeat": "8", "min_clips": 2, "margins": True}),
    (["--check"], {"check": True}),
]


@pytest.mark.parametrize(("flags", "options"), CASES, ids=[" ".join(flags) for flags, _ in CASES])
def test_python_and_the_command_line_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], options: dict[str, Any]
) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    monkeypatch.chdir(tmp_path)
    g2v.ground(FILES.flow, FILES.captions, **options).save("python.json")
    assert main(["ground", str(FILES.flow), str(FILES.captions), *flags, "-o", "cli.json"]) == 0
    assert Path("python.json").read_bytes() == Path("cli.json").read_bytes()
    np.save("s.npy", np.eye(10, 40).repeat(2, axis=1))
    g2v.ground(FILES.flow, scores=np.load("s.npy"), **options).save("python.json")
    assert main(["ground", str(FILES.flow), "--scores", "s.npy", *flags, "-o", "cli.json"]) == 0
    assert Path("python.json").read_bytes() == Path("cli.json").read_bytes()


def test_the_settings_are_in_the_result() -> None:
    found = g2v.ground(BAG, scores=SCORES, gamma=2.0, drop=("constant", 1.0), skip=np.ones(3))
    settings = found.options["settings"]
    assert settings["gamma"] == 2.0 and settings["drop"] == "constant" and settings["skip"] == "given"
    assert json.loads(json.dumps(found.to_json()))["options"]["settings"] == settings
    assert found.options["skip"] == "given" and found.options["drop"] == "constant:1"


@pytest.mark.parametrize("kind", ["text", "path", "string", "procedure", "flow", "tsort"])
def test_a_procedure_comes_in_any_form(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "salad.txt"
    path.write_text(STEPS, encoding="utf-8")
    flow = g2v.FlowGraph.bag(["Cut the tomatoes.", "Boil the eggs.", "Mix the salad."])
    given: Any = {
        "text": STEPS,
        "path": path,
        "string": str(path),
        "procedure": procedure_from_text(STEPS, source="here"),
        "flow": flow,
        "tsort": g2v.TSortGraph.compile(flow),
    }[kind]
    found = g2v.ground(given, scores=SCORES, parser="bag")
    assert found.flow.texts == flow.texts and found.order == (0, 1, 2)


def test_one_sentence_is_a_text_and_a_missing_file_is_named() -> None:
    assert len(g2v.ground("Cut the tomatoes.", scores=SCORES[:1], parser="bag").flow) == 1
    with pytest.raises(g2v.Graph2VidError, match=r"cannot read nowhere\.txt"):
        g2v.ground("nowhere.txt", scores=SCORES)
    with pytest.raises(InputError, match="give a video, captions, or one of scores"):
        g2v.ground(STEPS)


def test_of_several_procedures_the_best_is_grounded_and_all_are_ranked() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    found = g2v.ground([SHELF, STEPS], SAID, parser="bag", cache=False)
    assert found.flow.texts[0] == "Cut the tomatoes." and found.order == (1, 0, 2)
    ranking = found.options["ranking"]
    assert [one["procedure"] for one in ranking] == ["procedure 2", "procedure 1"]
    assert ranking[0]["plausibility"] > 0.5 > ranking[1]["plausibility"]
    assert Grounding.from_json(json.loads(json.dumps(found.to_json()))) == found
    with pytest.raises(InputError, match="one procedure, not 2"):
        g2v.ground([SHELF, STEPS], scores=SCORES, parser="bag")


def test_a_procedure_that_the_video_hardly_shows_is_warned_of() -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    with pytest.warns(UserWarning, match="the transcript hardly goes with this procedure"):
        g2v.ground(SHELF, SAID, parser="bag")
    with pytest.warns(UserWarning, match="2 clips, fewer than the 3 steps"):
        g2v.ground(STEPS, SAID, parser="bag", clip_seconds=15.0)


def test_the_check_is_in_the_result() -> None:
    flow = g2v.FlowGraph.chain(["c", "b", "a"])
    found = g2v.ground(flow, scores=SCORES * 2 - 3, preset="log_odds", skip=0.0, check=True)
    checked = OrderCheck.from_json(found.options["check"], flow)
    assert checked.verdict == g2v.grounding.check_order(found).verdict


def test_stages_are_told(tmp_path: Path) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    told: list[str] = []
    g2v.ground(STEPS, FILES.captions, parser="bag", progress=lambda stage, *_: told.append(stage))
    assert told == [
        "reading the procedure",
        "loading the video and models",
        "comparing the transcript with the steps",
        "aligning",
    ]


class Doubled:
    """Stands for trained features."""

    def arrays(self, steps: Any, clips: Any) -> dict[str, Any]:
        return {"steps": steps, "clips": 2.0 * clips}

    def said(self, steps: Any, cues: Any, duration: float, **options: Any) -> dict[str, Any]:
        assert options == {"clip_seconds": 2.0, "max_hours": 24.0}
        return {"scores": np.eye(len(steps), 15)}


def test_trained_features() -> None:
    flow, clips = BAG, SCORES.T
    doubled = g2v.ground(flow, clips=clips, steps=np.eye(3), features=Doubled())
    assert doubled.labels.tolist() == g2v.ground(flow, clips=clips, steps=np.eye(3)).labels.tolist()
    of_transcript = g2v.ground(flow, SAID, features=Doubled(), clip_seconds=2.0)
    assert of_transcript.cues == SAID.cues and of_transcript.options["narration"]["source"] == "a friend"
    with pytest.raises(InputError, match="trained features work on embeddings"):
        g2v.ground(flow, scores=SCORES, features=Doubled())


def test_a_policy_may_name_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "drop.npy", np.full(9, 0.25))
    flow = BAG
    named = g2v.ground(flow, scores=SCORES, drop=f"vector:{tmp_path / 'drop.npy'}")
    assert named.cost == g2v.ground(flow, scores=SCORES, drop=np.full(9, 0.25)).cost


@pytest.mark.parametrize("name", ["ground_video", "ground_media", "ground_narrated"])
def test_old_names_work_with_a_warning(name: str) -> None:
    pytest.importorskip("wordllama", reason="needs graph2vid[text]")
    flow, cues = g2v.FlowGraph.load(FILES.flow), read_captions(FILES.captions)
    with pytest.warns(DeprecationWarning, match=f"graph2vid.grounding.{name} is called graph2vid.ground now"):
        old = getattr(g2v.grounding, name)
    end = cues[-1].end
    given = {"ground_video": [FILES.captions], "ground_media": [end], "ground_narrated": [cues, end]}[name]
    found = old(flow, *given, **({"cues": cues} if name == "ground_media" else {}))
    assert found.labels.tolist() == g2v.ground(flow, FILES.captions).labels.tolist()
