"""Projects on disk: what is damaged is named, what was left behind is tidied, one studio at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph2vid.errors import Graph2VidError
from graph2vid.flow import FlowGraph
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import Replace
from graph2vid.studio.places import OutsideError, begins_like_video, inside, upload_name
from graph2vid.studio.projects import Media, Project, Projects, UnknownError


def with_flow(project: Project) -> Project:
    flow = Draft(FlowGraph.chain(["cut", "mix"])).to_json()
    project.history = project.history.edited(Replace(op="replace", source="test", flow=flow))
    return project


def test_everything_is_there_again(folder: Path) -> None:
    projects = Projects(folder)
    project = with_flow(projects.create("Salad", "Cut. Mix.", video=Media("folder", "film.mp4")))
    project.change(captions=Media("upload", "film.vtt"), clip_seconds=0.5)
    before = project.about, project.procedure, project.history.to_json()
    projects.close()
    again = Projects(folder).open("salad")
    assert (again.about, again.procedure, again.history.to_json()) == before
    assert again.draft == project.draft is not None


def test_one_studio_at_a_time(folder: Path) -> None:
    projects = Projects(folder)
    with pytest.raises(Graph2VidError, match="another studio is using"):
        Projects(folder)
    projects.close()
    Projects(folder).close()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Graph2VidError, match="cannot use the folder"):
        Projects(tmp_path / "file" / "projects")


def test_the_copy_of_the_graph_is_made_again(folder: Path) -> None:
    """A server that is killed between the log and the copy leaves the copy behind the log."""
    projects = Projects(folder)
    project = with_flow(projects.create("Salad"))
    path = project.folder / "flow.json"
    whole = path.read_text()
    for broken in ('{"format"', '{"format": "graph2vid-flow", "version": 1, "title": "old"}', None):
        path.unlink() if broken is None else path.write_text(broken)
        assert Project(project.folder).draft == project.draft
        assert path.read_text() == whole


def test_what_killed_processes_leave_is_tidied(folder: Path) -> None:
    projects = Projects(folder)
    project = with_flow(projects.create("Salad"))
    projects.close()
    (project.folder / ".flow.json.x1.part").write_text("half")
    (project.folder / ".upload-1").mkdir()
    (project.folder / ".upload-1" / "film.mp4").write_text("half")
    (project.folder / ".job-1").mkdir()
    (project.folder / ".job-1" / "result.json").write_text("{}")
    (folder / ".new-1" / "media").mkdir(parents=True)
    (folder / ".gone-1").mkdir()
    projects = Projects(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "salad"]
    assert not list(project.folder.rglob(".*"))
    assert projects.open("salad").draft == project.draft


@pytest.mark.parametrize("file", ["project.json", "edits.json", "corrections.json"])
@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": "other"}', "\x00", '{"format": "graph2vid-edits", "version": 1}']
)
def test_damaged_files_are_named_and_left_alone(client: Any, folder: Path, file: str, content: str) -> None:
    studio = client.app.state.studio
    project = with_flow(studio.projects.create("Salad"))
    project.take("").correct(())
    project._history = None
    (project.folder / file).write_text(content)
    answer = client.get("/api/projects/salad")
    assert answer.status_code == 422
    assert file in answer.json()["error"]
    assert client.get("/api/projects").status_code == 200
    assert (project.folder / file).read_text() == content


@pytest.mark.parametrize(
    "change",
    [{"title": 3}, {"video": "film.mp4"}, {"video": {"place": "folder"}}, {"clip_seconds": "x"}, {"version": 2}],
)
def test_a_damaged_project_file(folder: Path, change: dict[str, object]) -> None:
    project = Projects(folder).create("Salad")
    path = project.folder / "project.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Graph2VidError, match=r"project\.json"):
        _ = project.about


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/etc", "a/../b", "a//b", "./a", "a/", "a\\b", ".x", "a/.x", "a\x00", "a\nb"]
)
def test_names_that_lead_outside(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutsideError):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["", ".", "..", "salad/..", "UPPER", "-x", "a" * 65, "é", ".lock", "a b"])
def test_names_that_are_no_project(folder: Path, name: str) -> None:
    projects = Projects(folder)
    with pytest.raises(UnknownError):
        projects.open(name)


@pytest.mark.parametrize("name", ["", " ", ".x", "a/b", "a\\b", "a:b", "x" * 151, "a\x00", 'a"b', "<b>.mp4"])
def test_names_that_are_no_upload(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        upload_name(name)


def test_heads_of_videos() -> None:
    assert begins_like_video(b"\0\0\0\x20ftypisom")
    assert begins_like_video(b"\x1a\x45\xdf\xa3....")
    assert not begins_like_video(b"<!doctype html>")
    assert not begins_like_video(b"")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "graph2vid-grounding", "version": 1, "options": 3}'])
def test_a_damaged_result_does_not_stand_in_the_way(client: Any, folder: Path, content: str) -> None:
    project = with_flow(client.app.state.studio.projects.create("Salad"))
    for name in ("result.json", "previous.json", "job.json"):
        (project.folder / name).write_text(content)
    assert client.get("/api/projects/salad").json()["result"]["current"] is False
    assert client.get("/api/projects").json()[0]["problem"]
    for path in ("result", "view", "result/video", "export/json", "report"):
        assert client.get(f"/api/projects/salad/{path}").status_code == 422
