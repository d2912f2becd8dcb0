"""``graph2vid view``, and the reports of ``ground`` and ``demo``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graph2vid.cli import main
from groundings import onions, spaghetti

FOUND, COMPARE = spaghetti()


@pytest.fixture
def result(tmp_path: Path) -> Path:
    FOUND.save(tmp_path / "result.json")
    return tmp_path / "result.json"


def model_in(page: Path) -> Any:
    written = page.read_text(encoding="utf-8")
    found = re.search('id="result">(.*?)</script>', written, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_page_is_written_and_opened(
    result: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    assert main(["view", str(result)]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert opened == [page.resolve().as_uri()]
    assert model_in(page)["video"]["name"] == "spaghetti.mp4"


def test_without_a_browser_the_path_is_told(
    result: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    assert main(["view", str(result), "-o", str(result.parent / "p.html")]) == 0
    assert "open this page yourself" in capsys.readouterr().err


def test_the_order_is_checked_where_it_is_asked_for(tmp_path: Path) -> None:
    onions().save(tmp_path / "result.json")
    page = tmp_path / "p.html"
    arguments = ["view", str(tmp_path / "result.json"), "--no-open", "-o", str(page)]
    assert main(arguments) == 0
    assert model_in(page)["check"] is None
    assert main([*arguments, "--check"]) == 0
    assert "repeated" in [one["kind"] for one in model_in(page)["check"]["deviations"]]


def test_results_and_annotations_are_set_beside_it(result: Path, tmp_path: Path) -> None:
    rows = [f"{FOUND.flow.ids[step]},{start},{end}" for step, start, end in COMPARE["Truth"]]
    (tmp_path / "truth.csv").write_text("\n".join(["id,start,end", *rows]), encoding="utf-8")
    COMPARE["Order as written"].save(tmp_path / "other.json")
    page = tmp_path / "p.html"
    arguments = ["--compare", f"As written={tmp_path / 'other.json'}", "--compare", str(tmp_path / "truth.csv")]
    assert main(["view", str(result), "--no-open", "-o", str(page), *arguments]) == 0
    shown = model_in(page)["rows"]
    assert [row["name"] for row in shown] == ["As written", "truth"]
    assert len(shown[1]["segments"]) == len(rows)


def test_another_video_may_be_named(result: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    assert main(["view", str(result), "--no-open", "-o", str(page), "--video", "https://example.org/v.webm"]) == 0
    assert model_in(page)["video"] == {"url": "https://example.org/v.webm", "name": "v.webm"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["view", "nowhere.json"], "cannot read nowhere.json"),
        (["view", "{result}", "--no-open", "--compare", "nowhere.csv"], "nowhere.csv"),
        (["view", "{result}", "--no-open", "--video", "no.mp4", "--embed-video"], "cannot read no.mp4"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    arguments: list[str], message: str, result: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(result=result) for argument in arguments]) == 2
    written = capfd.readouterr().err
    assert message in written and written.count("\n") == 1


def test_a_result_cannot_put_a_file_from_elsewhere_into_the_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("av")
    folder, page = tmp_path / "from somebody", tmp_path / "p.html"
    folder.mkdir()
    result = folder / "result.json"
    FOUND.save(result)
    private = tmp_path / "private.mp4"
    private.write_bytes(Path(FOUND.video or "").read_bytes())
    (folder / "link.mp4").symlink_to(private)
    shown = ["view", str(result), "--no-open", "--embed-video", "-o", str(page)]
    for video in ("../private.mp4", str(private), "link.mp4"):
        result.write_text(json.dumps(json.loads(result.read_text(encoding="utf-8")) | {"video": video}))
        assert main(shown) == 2
        written = capfd.readouterr().err
        assert "outside of its folder" in written and "--video" in written and written.count("\n") == 1
        assert not page.exists()
    assert main([*shown, "--video", str(private)]) == 0  # the user's own word
    page.unlink()
    (folder / "v.mp4").write_bytes(private.read_bytes())
    result.write_text(json.dumps(json.loads(result.read_text(encoding="utf-8")) | {"video": "v.mp4"}))
    assert main(shown) == 0
    assert page.stat().st_size > private.stat().st_size


def test_ground_keeps_video_words_and_evidence(tmp_path: Path) -> None:
    pytest.importorskip("wordllama")
    from graph2vid.sample import NarratedFiles

    files, page = NarratedFiles(), tmp_path / "p.html"
    arguments = ["ground", str(files.flow), str(files.captions), "--video", str(files.video), "--report", str(page)]
    assert main([*arguments, "-o", str(tmp_path / "r.json"), "--embed-video"]) == 0
    model = model_in(page)
    assert model["video"]["name"] == "spaghetti.mp4" and model["cues"] and model["evidence"]
    assert model["facts"]["narration"]["source"] == "captions spaghetti.vtt"
    assert page.stat().st_size > files.video.stat().st_size
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert document["video"] == str(files.video.resolve()) and document["cues"] and document["evidence"]
