"""The page of a grounding, as a file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence import Cue
from graph2vid.flow import FlowGraph
from graph2vid.flow.colours import PALETTE
from graph2vid.grounding import GroundedSegment, Grounding, ground
from graph2vid.report import STATIC, page, view_model, write_report
from graph2vid.sample import NarratedFiles
from groundings import hostile, one_hour, spaghetti

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Fails on a tag that is closed out of turn; keeps what stands in elements with an id."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str | None]] = []
        self.held: dict[str | None, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        key = self.open[-1][1] if self.open else None
        self.held[key] = self.held.get(key, "") + data


def small() -> Grounding:
    flow = FlowGraph.from_edges(["Cut <b>the</b> tomato", "Boil & peel eggs", "Mix"], [(0, 2), (1, 2)], "Salad <1>")
    scores = np.zeros((3, 12))
    scores[1, 1:4] = scores[0, 5:7] = 9.0
    return ground(flow, scores=scores, match="raw", drop=-1.0, skip=0.1)


def model_in(text: str) -> Any:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return json.loads(checker.held["result"])


def test_the_model_says_what_was_found() -> None:
    found = replace(small(), cues=(Cue(1.0, 3.0, "I boil two eggs"),))
    model = view_model(found, compare={"truth": [(0, 5.0, 7.0), (1, 0.0, 4.0)], "again": found})
    assert model["title"] == "Salad <1>" and model["end"] == 12.0 and model["video"] is None
    assert model["order"] == [1, 0] and model["not_shown"] == [2]
    assert [(part["step"], part["start"], part["end"]) for part in model["segments"]] == [(1, 1.0, 4.0), (0, 5.0, 7.0)]
    assert model["background"] == [[0.0, 1.0], [4.0, 5.0], [7.0, 12.0]]
    assert [step["place"] for step in model["steps"]] == [2, 1, None] and model["steps"][2]["after"] == [0, 1]
    assert [step["colour"] for step in model["steps"]] == list(PALETTE[:3])
    assert model["cues"] == [[1.0, 3.0, "I boil two eggs"]]
    assert model["evidence"]["shape"] == [3, 12] and model["evidence"]["clip_seconds"] == 1.0
    assert [row["name"] for row in model["rows"]] == ["truth", "again"]
    assert [part["step"] for part in model["rows"][0]["segments"]] == [1, 0]  # in order of time
    assert {(edge["from"], edge["to"]) for edge in model["graph"]["edges"]} == {(0, 2), (1, 2)}
    for box in model["graph"]["boxes"]:
        assert 0 <= box["x"] <= box["x"] + box["width"] <= model["graph"]["width"] + 0.2
    json.dumps(model, allow_nan=False)


def test_results_of_other_procedures_are_not_compared() -> None:
    other = ground(FlowGraph.chain([("sew", "sew")]), scores=[[1.0, 2.0]])
    with pytest.raises(InputError, match="'mine' cannot be compared: the step 'sew' is not one of this procedure"):
        view_model(small(), compare={"mine": other})


def test_very_many_segments_are_drawn_as_fewer() -> None:
    times = np.arange(6000)
    steps = times // 600 % 2
    segments = [
        GroundedSegment(int(step), "ab"[step], "", at, at + 0.5, 0.5) for at, step in zip(times, steps, strict=True)
    ]
    labels = np.ravel([steps, np.full(6000, -1)], order="F")
    flow = FlowGraph.chain([("a", "a"), ("b", "b")])
    model = view_model(Grounding(flow, tuple(segments), (), (0, 1), 0.0, labels, clip_seconds=0.5))
    assert len(model["segments"]) == 10 and len(model["background"]) == 800
    known = {"confidence": 0.5, "margin": None, "uncalibrated": False, "why": ""}
    assert model["segments"][1] == {"step": 1, "start": 600, "end": 1199.5} | known


@pytest.mark.parametrize("n_clips", [1, 7, 120_001, 500_000])
def test_evidence_of_long_videos_stays_small(n_clips: int) -> None:
    evidence = np.linspace(-1.0, 1.0, 2 * n_clips).reshape(2, n_clips)
    evidence[0, 0] = -np.inf
    found = Grounding(FlowGraph.bag(["a", "b"]), (), (0, 1), (), 0.0, np.full(n_clips, -1), evidence=evidence)
    packed = view_model(found)["evidence"]
    clips = packed["shape"][1]
    assert len(base64.b64decode(packed["bytes"])) == 2 * clips <= 120_002
    assert clips * packed["clip_seconds"] >= n_clips


def test_the_page_holds_it_all_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    found, compare = spaghetti()
    write_report(tmp_path / "page.html", found, compare=compare)
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(written.encode()) < 165_000
    assert model_in(written)["rows"][1]["name"] == "Truth"
    assert "<noscript><h1>Spaghetti" in written
    urls = set(re.findall(r"[a-z]+://[^\s\"'<)]+", written))
    assert urls == {"http://www.w3.org/2000/svg", Path(str(found.video)).resolve().as_uri()}


def test_a_report_of_an_hour_is_small() -> None:
    assert len(page(one_hour()).encode()) < 500_000


def test_scripts_and_style_are_the_only_ones_allowed() -> None:
    written = page(small())
    policy = re.search('Content-Security-Policy" content="([^"]*)"', written)
    assert policy is not None and policy[1].startswith("default-src 'none';")
    for tag in ("style", 'script type="module"'):
        inside = re.search(f"<{tag}>(.*?)</{tag.split()[0]}>", written, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]


def test_what_users_write_stays_text() -> None:
    found = hostile()
    written = page(found)
    assert model_in(written)["title"] == found.flow.title
    for text in ("<script>window", "<img", "<svg onload", "<!--"):
        assert text not in written
    assert model_in(written)["video"] is None  # no such kind of URL is linked


def test_the_modules_make_one_script() -> None:
    names: list[str] = []
    for file in sorted(STATIC.glob("*.js")):
        names += re.findall(r"^(?:export )?(?:function|const|let|class) (\w+)", file.read_text("utf-8"), re.MULTILINE)
    assert len(names) == len(set(names)), "a name is used by two modules, which the report puts into one"
    written = page(small())
    script = written[written.index('<script type="module">') :]
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def test_a_video_is_linked_from_where_the_page_lies(tmp_path: Path) -> None:
    (tmp_path / "in side").mkdir()
    inside = tmp_path / "in side" / "a #1.mp4"
    found = small()

    def linked(video: str, folder: Path | None = None) -> Any:
        return model_in(page(replace(found, video=video), folder=folder))["video"]

    assert linked(str(inside), tmp_path) == {"url": "in%20side/a%20%231.mp4", "name": "a #1.mp4"}
    assert linked(str(inside), tmp_path / "elsewhere")["url"] == inside.as_uri()
    web = linked("https://example.org:8080/v/a.webm?x=1")
    assert web == {"url": "https://example.org:8080/v/a.webm?x=1", "name": "a.webm"}
    assert "media-src 'self' blob: file: https://example.org:8080;" in page(replace(found, video=web["url"]))
    for bad in ("javascript://x/%0aalert(1)", "data://x", "https://a;script-src *//x", "https://a b/c"):
        assert linked(bad) is None


def test_a_video_is_embedded(tmp_path: Path) -> None:
    pytest.importorskip("av")
    video = tmp_path / "v.mp4"
    video.write_bytes(NarratedFiles().video.read_bytes() + b"</script>\xff")
    checker = Checker()
    checker.feed(page(replace(small(), video=str(video)), embed_video=True))
    assert base64.b64decode(checker.held["video"]) == video.read_bytes()


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/sh\n" * 50, b"", b"\x89PNG\r\n\x1a\n" + bytes(99)])
def test_only_media_are_embedded(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("av")
    (tmp_path / "v.mp4").write_bytes(content)
    with pytest.raises(Graph2VidError, match=r"v\.mp4 is not a video or audio file"):
        page(replace(small(), video=str(tmp_path / "v.mp4")), embed_video=True)


@pytest.mark.parametrize(
    ("video", "message"),
    [
        (None, "there is no video to embed"),
        ("https://example.org/a.mp4", "only a file can be embedded"),
        ("nowhere.mp4", "cannot read nowhere.mp4"),
    ],
)
def test_what_cannot_be_embedded(video: str | None, message: str) -> None:
    with pytest.raises(Graph2VidError, match=message):
        page(replace(small(), video=video), embed_video=True)


def test_too_large_a_video_is_not_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("graph2vid.report.page"), "_MOST_EMBEDDED", 10)
    (tmp_path / "v.mp4").write_bytes(bytes(11))
    with pytest.raises(InputError, match="link it instead"):
        page(replace(small(), video=str(tmp_path / "v.mp4")), embed_video=True)


def test_a_grounding_without_anything_has_a_page() -> None:
    nothing = Grounding(FlowGraph.bag(["a"]), (), (0,), (), 0.0, np.array([-1, -1]))
    assert model_in(page(nothing))["not_shown"] == [0]
