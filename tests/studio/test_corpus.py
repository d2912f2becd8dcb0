"""Projects of many videos: the list, grounding all, learning from what was checked, annotations from elsewhere."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from graph2vid.studio.app import create_app
from studios import stored, wait_for
from task_corpus import FOREIGN, STEPS, made_up

Truth = dict[str, list[tuple[int, float, float]]]


@pytest.fixture
def corpus(tmp_path: Path) -> Truth:
    """Eight videos that use none of the words of the steps; what they show."""
    folder = tmp_path / "films"
    folder.mkdir()
    return {path.name: truth for path, truth in made_up(folder, 8, sayings=FOREIGN).items()}


@pytest.fixture
def client(tmp_path: Path, corpus: Truth) -> Iterator[Any]:
    """A studio with the corpus as its folder of videos."""
    app = create_app(tmp_path / "projects", videos=tmp_path / "films")
    with TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as client:
        yield client


def project_of(client: Any, corpus: Truth) -> str:
    """Make a project of all the videos; return its name."""
    name = client.post("/api/projects", json={"title": "Breakfast"}).json()["name"]
    flow = "\n".join(f"s{at}: {text}" for at, text in enumerate(STEPS))
    client.put(f"/api/projects/{name}/flow", params={"name": "b.flow"}, content=flow.encode())
    for video in corpus:
        captions = {"place": "folder", "name": video}
        assert client.post(f"/api/projects/{name}/videos", json={"captions": captions}).status_code == 201
    return str(name)


def done(client: Any, name: str, what: str) -> dict[str, Any]:
    """Run a job to its end."""
    job = client.post(f"/api/projects/{name}/{what}").json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "done", ended
    return ended


def ids_of(client: Any, name: str) -> dict[str, str]:
    return {one["title"]: one["id"] for one in client.get(f"/api/projects/{name}/videos").json()["videos"]}


def score(client: Any, name: str, video: str, truth: list[tuple[int, float, float]]) -> float:
    """Return the share of the true time of the steps in which the right step is found."""
    segments = client.get(f"/api/projects/{name}/result", params={"video": video}).json()["segments"]
    right = sum(
        max(0.0, min(end, part["end"]) - max(start, part["start"]))
        for step, start, end in truth
        for part in segments
        if part["step"] == f"s{step}"
    )
    return right / sum(end - start for _, start, end in truth)


def correct(client: Any, name: str, video: str, truth: list[tuple[int, float, float]]) -> None:
    for step, start, end in truth:
        held = {"kind": "exact", "step": f"s{step}", "start": start, "end": end}
        answer = client.post(f"/api/projects/{name}/corrections", params={"video": video}, json=held)
        assert answer.status_code == 201, answer.text


def test_a_project_learns_from_three_checked_videos_and_undo_brings_the_rest_back(
    client: Any, tmp_path: Path, corpus: Truth
) -> None:
    name = project_of(client, corpus)
    assert {one["status"] for one in client.get(f"/api/projects/{name}/videos").json()["videos"]} == {"new"}
    done(client, name, "ground-all")
    about = client.get(f"/api/projects/{name}/videos").json()
    assert {one["status"] for one in about["videos"]} == {"grounded"} and about["lesson"] is None
    assert client.post(f"/api/projects/{name}/ground-all").status_code == 422  # nothing is left to do
    assert 3 <= len(about["next"]) <= 5 and all(one["segments"] for one in about["next"])
    assert about["next"][0]["seconds"] >= 1

    ids = ids_of(client, name)
    taught = [one["title"] for one in about["next"][:3]]
    for title in taught[:2]:
        correct(client, name, ids[title], corpus[title])
        client.put(f"/api/projects/{name}/checked", params={"video": ids[title]}, json={"checked": True})
    refused = client.post(f"/api/projects/{name}/learn")
    assert refused.status_code == 422 and "check 3 videos" in refused.json()["error"]
    correct(client, name, ids[taught[2]], corpus[taught[2]])
    client.put(f"/api/projects/{name}/checked", params={"video": ids[taught[2]]}, json={"checked": True})
    rest = [title for title in corpus if title not in taught]
    before = {title: score(client, name, ids[title], corpus[title]) for title in rest}
    kept = {title: client.get(f"/api/projects/{name}/result", params={"video": ids[title]}).json() for title in corpus}

    done(client, name, "learn")
    about = client.get(f"/api/projects/{name}/videos").json()
    lesson = about["lesson"]
    assert lesson["current"] and lesson["checked"] == 3 and lesson["chosen"] == "labelled" and lesson["gain"] > 0
    after = {title: score(client, name, ids[title], corpus[title]) for title in rest}
    assert all(after[title] > before[title] for title in rest), (before, after)
    assert sum(after.values()) > sum(before.values()) + 0.5, (before, after)
    assert {one["status"] for one in about["videos"]} == {"grounded", "checked"}
    assert not {one["title"] for one in about["next"]} & {*taught}
    for title in taught:  # what was checked is as it was corrected
        assert score(client, name, ids[title], corpus[title]) == pytest.approx(1.0)

    state = client.post(f"/api/projects/{name}/undo").json()
    assert state["redo_words"] == "what was learnt"
    for title in corpus:
        assert client.get(f"/api/projects/{name}/result", params={"video": ids[title]}).json() == kept[title]
    assert client.get(f"/api/projects/{name}/videos").json()["lesson"] is None
    client.post(f"/api/projects/{name}/redo")
    assert {title: score(client, name, ids[title], corpus[title]) for title in rest} == after

    # What was learnt is used by whatever is grounded from now on, and is outdated when a correction goes.
    done(client, name, f"ground?video={ids[rest[0]]}")
    assert score(client, name, ids[rest[0]], corpus[rest[0]]) == after[rest[0]]
    client.delete(f"/api/projects/{name}/corrections/0", params={"video": ids[taught[0]]})
    assert client.get(f"/api/projects/{name}/videos").json()["lesson"]["current"] is False
    assert stored(tmp_path / "projects" / name / "edits.json")["learned"] == [1]


def test_videos_come_and_go_and_the_first_one_of_an_old_project_stays(
    client: Any, tmp_path: Path, corpus: Truth
) -> None:
    name = client.post("/api/projects/sample").json()["name"]
    project = tmp_path / "projects" / name / "project.json"
    old = stored(project)
    del old["videos"]  # as the release before wrote it
    project.write_text(json.dumps(old))
    assert client.get(f"/api/projects/{name}").json()["videos"] == [{"id": "", "title": "spaghetti.mp4"}]
    client.post(f"/api/projects/{name}/videos", json={"captions": {"place": "folder", "name": "v0.vtt"}})
    ids = ids_of(client, name)
    assert [*ids] == ["spaghetti.mp4", "v0.vtt"] and ids["spaghetti.mp4"] == ""
    shown = client.get(f"/api/projects/{name}", params={"video": ids["v0.vtt"]}).json()
    assert (shown["video"], shown["captions"]["name"], shown["shown"]) == (None, "v0.vtt", ids["v0.vtt"])
    assert client.get(f"/api/projects/{name}", params={"video": "nonsense"}).status_code == 404
    assert client.post(f"/api/projects/{name}/videos", json={}).status_code == 422
    assert client.delete(f"/api/projects/{name}/videos").status_code == 204  # the first
    assert [*ids_of(client, name)] == ["v0.vtt"]
    assert client.delete(f"/api/projects/{name}/videos", params={"video": ids["v0.vtt"]}).status_code == 204
    assert [*ids_of(client, name)] == []


def test_one_bad_video_does_not_hold_up_the_others(client: Any, tmp_path: Path, corpus: Truth) -> None:
    name = project_of(client, {"v0.vtt": corpus["v0.vtt"], "v1.vtt": corpus["v1.vtt"]})
    (tmp_path / "films" / "v0.vtt").write_text("WEBVTT\n")
    ended = done(client, name, "ground-all")
    assert any("v0.vtt" in warning for warning in ended["warnings"])
    states = {one["title"]: one["status"] for one in client.get(f"/api/projects/{name}/videos").json()["videos"]}
    assert states == {"v0.vtt": "new", "v1.vtt": "grounded"}


def test_annotations_are_read_and_all_results_are_exported(client: Any, corpus: Truth) -> None:
    some = {video: corpus[video] for video in ("v0.vtt", "v1.vtt")}
    name = project_of(client, some)
    table = ["video,step,start,end", *(f"{v},s{s},{a},{b}" for v, rows in some.items() for s, a, b in rows)]
    path = f"/api/projects/{name}/annotations"
    read = client.put(path, params={"name": "all.csv", "several": True}, content="\n".join(table).encode()).json()
    assert [one["title"] for one in read["videos"]] == [*some] and read["corrections"] == 6
    ids = ids_of(client, name)
    known = client.get(f"/api/projects/{name}/corrections", params={"video": ids["v1.vtt"]}).json()
    assert {(one["step"], one["start"], one["end"]) for one in known} == {(f"s{s}", a, b) for s, a, b in some["v1.vtt"]}

    # From Label Studio, about one video; a step that is annotated twice is held to the longer span.
    region = {"value": {"timelinelabels": ["s0"], "ranges": [{"start": 1, "end": 50}, {"start": 101, "end": 125}]}}
    task = [{"data": {"video": "/upload/x.mp4", "fps": 25}, "annotations": [{"result": [region]}]}]
    answer = client.put(path, params={"name": "x.json"}, content=json.dumps(task).encode())
    assert answer.status_code == 200, answer.text
    assert "annotated 2 times" in answer.json()["notes"][0]
    first = client.get(f"/api/projects/{name}/corrections").json()
    assert [(one["start"], one["end"]) for one in first if one["step"] == "s0"] == [(0.0, 2.0)]
    for content, file in ((b"{}", "x.json"), (b"[1]", "x.json"), (b"a,b\n1,2", "x.csv"), (b"<x", "x.eaf")):
        answer = client.put(path, params={"name": file}, content=content)
        assert answer.status_code == 422 and file in answer.json()["error"]

    assert client.get(f"/api/projects/{name}/exports/csv").status_code == 404
    done(client, name, "ground-all")
    found = zipfile.ZipFile(io.BytesIO(client.get(f"/api/projects/{name}/exports/csv").content))
    assert found.namelist() == ["v0.steps.csv", "v1.steps.csv"] and b"start" in found.read("v0.steps.csv")
