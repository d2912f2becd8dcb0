"""The API: projects, graphs, uploads, jobs, corrections, exports; and what it refuses."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graph2vid._options import GROUND_OPTIONS, declared
from graph2vid.grounding import Grounding
from graph2vid.sample import NarratedFiles
from graph2vid.studio.work import in_words
from studios import made, stored, wait_for, with_graph

SAMPLE = NarratedFiles()
VIDEO = SAMPLE.video.read_bytes()
CAPTIONS = SAMPLE.captions.read_bytes()
HOSTILE = [
    "../secret.mp4",
    "..%2fsecret.mp4",
    "%2e%2e/secret.mp4",
    "....//secret.mp4",
    "/etc/passwd.mp4",
    "%2fetc%2fpasswd.mp4",
    "..\\secret.mp4",
    "away/secret.mp4",
    "link.mp4",
    ".hidden.mp4",
    "film.mp4\x00.mp4",
    "film.mp4/",
    "./film.mp4",
    "",
    " ",
    "more/../film.mp4",
]


def edit(client: Any, name: str, **what: Any) -> Any:
    return client.post(f"/api/projects/{name}/edits", json={"edit": what})


# -- projects and graphs -----------------------------------------------------------------------------------------


def test_a_procedure_becomes_a_graph(client: Any, folder: Path) -> None:
    name = made(client)
    state = client.get(f"/api/projects/{name}").json()
    assert state["title"] == "Salad"
    assert [step["text"] for step in state["flow"]["steps"]] == [
        "Cut the tomato.",
        "Cut the cucumber.",
        "Mix everything.",
    ]
    assert state["flow"]["edges"] == [["1", "2"], ["2", "3"]]
    assert state["flow"]["reasons"][0]["rule"] == "listed order"
    assert state["orders"]["words"] == "1 possible order"
    assert (state["parser"], state["can_undo"], state["job"]["state"]) == ("linear", True, "done")
    assert stored(folder / name / "flow.json") == client.get(f"/api/projects/{name}/flow").json() == state["flow"]
    assert sorted(path.name for path in (folder / name).iterdir()) == [
        "edits.json", "flow.json", "job.json", "media", "procedure.txt", "project.json"
    ]  # fmt: skip


def test_edits_undo_and_redo(client: Any, folder: Path) -> None:
    name = with_graph(client)
    assert client.get(f"/api/projects/{name}").json()["orders"]["exact"] == "2"
    state = edit(client, name, op="remove-edge", before="a", after="c").json()
    assert (state["orders"]["exact"], state["flow"]["edges"]) == ("3", [["b", "c"]])
    refused = edit(client, name, op="add-edge", before="c", after="b")
    assert refused.status_code == 422
    assert refused.json()["error"] == "3 → 2 is refused: the steps form a cycle: 2 → 3 → 2"
    assert client.post(f"/api/projects/{name}/undo").json()["flow"]["edges"] == [["a", "c"], ["b", "c"]]
    assert client.post(f"/api/projects/{name}/redo").json()["flow"]["edges"] == [["b", "c"]]
    assert client.post(f"/api/projects/{name}/redo").status_code == 422
    assert stored(folder / name / "flow.json")["edges"] == [["b", "c"]]
    state = edit(client, name, op="optional", step="b", optional=True).json()
    assert state["flow"]["steps"][1]["optional"] is True


def test_two_editors_do_not_overwrite_one_another(client: Any) -> None:
    name = with_graph(client)
    revision = client.get(f"/api/projects/{name}").json()["revision"]
    what = {"edit": {"op": "rename", "step": "a", "text": "slice"}, "revision": revision}
    assert client.post(f"/api/projects/{name}/edits", json=what).status_code == 200
    answer = client.post(f"/api/projects/{name}/edits", json=what)
    assert answer.status_code == 409
    assert "changed elsewhere" in answer.json()["error"]


def test_two_windows_neither_undo_nor_take_back_what_they_do_not_see(client: Any) -> None:
    name = with_graph(client)
    seen = client.get(f"/api/projects/{name}").json()["revision"]
    edit = {"op": "rename", "step": "a", "text": "peel the tomato"}
    assert client.post(f"/api/projects/{name}/edits", json={"edit": edit}).status_code == 200
    for way in ("undo", "redo"):
        answer = client.post(f"/api/projects/{name}/{way}", params={"revision": seen})
        assert answer.status_code == 409 and "changed elsewhere" in answer.json()["error"]
    assert client.post(f"/api/projects/{name}/undo", params={"revision": seen + 1}).status_code == 200
    for start in (0, 5):
        client.post(f"/api/projects/{name}/corrections", json={"kind": "forbid", "step": "a", "start": start, "end": 9})
    first, second = client.get(f"/api/projects/{name}/corrections").json()
    path = f"/api/projects/{name}/corrections/0"
    assert client.delete(path, params={"words": second["words"]}).status_code == 409
    assert client.delete(path, params={"words": first["words"]}).json() == [second]


def test_what_is_no_video_is_told_by_its_name(client: Any) -> None:
    name = with_graph(client)
    client.put(f"/api/projects/{name}/media/fake.mp4", content=b"\0\0\0\x20ftypisom" + bytes(3000))
    client.patch(f"/api/projects/{name}", json={"video": {"place": "upload", "name": "fake.mp4"}})
    job = client.post(f"/api/projects/{name}/ground").json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "failed" and ended["message"].startswith("fake.mp4 is not a video")


def test_projects_are_listed_changed_and_deleted(client: Any, folder: Path) -> None:
    first, second = with_graph(client), with_graph(client)
    assert (first, second) == ("salad", "salad-2")
    client.patch(f"/api/projects/{first}", json={"title": "Fruit salad", "clip_seconds": 2})
    listed = client.get("/api/projects").json()
    assert {entry["name"]: entry["title"] for entry in listed} == {"salad": "Fruit salad", "salad-2": "Salad"}
    assert client.delete(f"/api/projects/{second}").status_code == 204
    assert client.get(f"/api/projects/{second}").status_code == 404
    assert not (folder / second).exists()
    assert client.get(f"/api/projects/{first}").json()["clip_seconds"] == 2


def test_settings_are_the_options_of_grounding(client: Any, folder: Path) -> None:
    path = f"/api/projects/{with_graph(client)}"
    described = {one["name"]: one for one in client.get("/api/about").json()["settings"]}
    declared_here = {one.name: one for cls in GROUND_OPTIONS for one in declared(cls) if one.name in described}
    assert {"clip_seconds", "embedder", "skip", "gamma", "contiguous", "language"} <= described.keys()
    assert all(described[name]["help"] == one.about.help for name, one in declared_here.items())
    given = {"skip": "constant:4", "gamma": 2.5, "contiguous": False, "clip_seconds": 2.0}
    changed = client.patch(path, json=given).json()
    assert {name: changed[name] for name in given} == given
    assert client.patch(path, json={"gamma": None}).json()["gamma"] == described["gamma"]["default"] == 1.0
    kept = stored(folder / "salad" / "project.json")
    assert (kept["skip"], kept["contiguous"]) == ("constant:4", False)
    for wrong in ({"gamma": 0}, {"clip_seconds": "long"}, {"skip": "given:/etc/passwd"}, {"durations": "x"}):
        assert client.patch(path, json=wrong).status_code == 422
    (folder / "salad" / "project.json").write_text(json.dumps(OLD_PROJECT))
    assert client.get(path).json()["clip_seconds"] == 3


# As the first release wrote it.
OLD_PROJECT = {"format": "graph2vid-project", "version": 1, "title": "Salad", "video": None, "captions": None,
               "parser": "auto", "embedder": "minilm", "clip_seconds": 3}  # fmt: skip


def test_the_sample_offers_its_video_and_its_captions(client: Any) -> None:
    listed = client.get(f"/api/projects/{with_graph(client)}/media").json()
    of_sample = [(one["name"], one["kind"]) for one in listed if one["place"] == "sample"]
    assert of_sample == [("spaghetti.mp4", "video"), ("spaghetti.vtt", "captions")]


def test_titles_are_text_and_nothing_else(client: Any, folder: Path) -> None:
    name = client.post("/api/projects", json={"title": "<img src=x onerror=alert(1)>/../../é"}).json()["name"]
    assert name == "img-src-x-onerror-alert-1-e"
    assert (folder / name).is_dir()
    assert client.post("/api/projects", json={"title": "¡™£"}).json()["name"] == "tm"
    assert client.post("/api/projects", json={"title": "日本"}).json()["name"] == "project"


def test_a_procedure_that_is_none_is_refused(client: Any) -> None:
    name = made(client)
    before = client.get(f"/api/projects/{name}").json()["procedure"]
    for body in (b"\x00\x01\x02", b"%PDF-1.7", b"{", b"<html><body></body></html>"):
        answer = client.put(f"/api/projects/{name}/procedure", content=body)
        assert answer.status_code == 422, body
        assert answer.json()["error"]
    assert client.put(f"/api/projects/{name}/procedure", content=b"x" * ((1 << 20) + 1)).status_code == 413
    assert client.get(f"/api/projects/{name}").json()["procedure"] == before
    assert client.put(f"/api/projects/{name}/procedure", content="Schäle 3 Äpfel.".encode("utf-16")).status_code == 200
    assert client.get(f"/api/projects/{name}").json()["procedure"] == "Schäle 3 Äpfel."


def test_a_flow_graph_that_is_none_is_refused(client: Any) -> None:
    name = with_graph(client)
    for file, body in (("x.flow", b"a -> "), ("x.json", b"{}"), ("x.exe", b"MZ"), ("../../x.flow", b"->"), ("", b"")):
        answer = client.put(f"/api/projects/{name}/flow", params={"name": file}, content=body)
        assert answer.status_code == 422, file
        assert "/tmp" not in answer.json()["error"]
    assert client.get(f"/api/projects/{name}/flow").json()["edges"] == [["a", "c"], ["b", "c"]]


# -- media -------------------------------------------------------------------------------------------------------


def test_what_is_handed_in_is_checked(client: Any, folder: Path) -> None:
    name = with_graph(client)
    put = lambda file, body: client.put(f"/api/projects/{name}/media/{file}", content=body)  # noqa: E731
    assert put("film.mp4", VIDEO).status_code == 201
    assert put("film.vtt", CAPTIONS).json() == {
        "place": "upload",
        "name": "film.vtt",
        "kind": "captions",
        "bytes": len(CAPTIONS),
    }
    assert put("page.mp4", b"<html>not a video at all</html>").status_code == 415
    assert put("short.mp4", b"x").status_code == 415
    assert put("empty.mp4", b"").status_code == 415
    assert put("script.html", b"<script>").status_code == 415
    assert put("run.exe", b"MZ").status_code == 415
    assert put("empty.vtt", b"WEBVTT\n").status_code == 422
    assert put("bad.vtt", b"nothing").json()["error"] == "bad.vtt, line 1: a WebVTT file begins with WEBVTT"
    assert put("big.mp4", VIDEO + bytes(1 << 20)).status_code == 413

    def pieces() -> Any:
        yield VIDEO
        for _ in range(20):
            yield bytes(64 << 10)

    assert put("piecemeal.mp4", pieces()).status_code == 413
    assert sorted(path.name for path in (folder / name / "media").iterdir()) == ["film.mp4", "film.vtt"]
    assert not list((folder / name).glob(".*"))
    listed = {(file["place"], file["name"]) for file in client.get(f"/api/projects/{name}/media").json()}
    assert ("upload", "film.mp4") in listed
    assert ("folder", "more/film.vtt") in listed
    assert {file for _, file in listed}.isdisjoint({"link.mp4", "away/secret.mp4", "secret.mp4"})
    assert client.delete(f"/api/projects/{name}/media/film.vtt").status_code == 204
    assert client.delete(f"/api/projects/{name}/media/film.vtt").status_code == 404


def test_media_and_captions_alone_are_offered(client: Any, videos: Path) -> None:
    """Of files that end in .json and .txt those that hold a transcript; nothing that is only named like a video."""
    said = {"segments": [{"start": 1.0, "end": 2.0, "text": "Hello there."}]}
    (videos / "talk.json").write_text(json.dumps(said))
    (videos / "result.json").write_text('{"format": "graph2vid-grounding", "version": 1}')
    (videos / "package.json").write_text('{"name": "x"}')
    (videos / "broken.json").write_text("{")
    (videos / "talk.txt").write_text("0:01 Hello there.\n0:04 Let us cut.\n")
    (videos / "recipe.txt").write_text("Bread\n\n1. Knead.\n2. Bake.\n")
    (videos / "loaf.txt").write_text("Loaf\n\n1. Knead.\n0:45 in the oven\n")
    (videos / "empty.txt").write_text("")
    (videos / "notes.mp4").write_text("bread, milk, eggs")
    (videos / "notes.md").write_text("# Notes")
    name = with_graph(client)
    listed = client.get(f"/api/projects/{name}/media").json()
    found = {file["name"] for file in listed if file["place"] == "folder"}
    assert found == {"film.mp4", "more/film.vtt", "talk.json", "talk.txt"}
    (videos / "result.json").write_text(json.dumps(said))  # changed meanwhile
    listed = client.get(f"/api/projects/{name}/media").json()
    assert "result.json" in {file["name"] for file in listed}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_lead_nowhere_else(client: Any, folder: Path, videos: Path, hostile: str) -> None:
    name = with_graph(client)
    before = sorted(folder.parent.rglob("*"))
    for place in ("folder", "upload", "sample"):
        answer = client.patch(f"/api/projects/{name}", json={"video": {"place": place, "name": hostile}})
        assert answer.status_code in (404, 422), answer.text
    quoted = hostile.replace("\x00", "%00")
    answers = [
        client.put(f"/api/projects/{name}/media/{quoted}", content=VIDEO[:4000]),
        client.delete(f"/api/projects/{name}/media/{quoted}"),
        client.get(f"/api/projects/{quoted}"),
        client.get(f"/api/projects/{quoted}/video"),
        client.get(f"/static/{quoted}"),
        client.get(f"/view/{quoted}"),
        client.get(f"/static/../{quoted}"),
        client.get(f"/api/projects/{name}/export/{quoted}"),
    ]
    allowed = {200} if hostile in ("", " ", "link.mp4", "./film.mp4", "film.mp4/", "more/../film.mp4") else set()
    for answer in answers:
        assert answer.status_code in {201, 204, 307, 404, 405, 415, 422} | allowed, (answer.request.url, answer.text)
        assert b"secret" not in answer.content.replace(b"secret.mp4", b"")
        assert b"root:" not in answer.content
    after = [path for path in sorted(folder.parent.rglob("*")) if path not in before]
    assert all(path.parent == folder / name / "media" for path in after), after


def test_links_inside_a_project_are_not_followed(client: Any, folder: Path, tmp_path: Path) -> None:
    name = with_graph(client)
    target = tmp_path / "elsewhere.txt"
    target.write_text("secret")
    (folder / name / "procedure.txt").symlink_to(target)
    (folder / name / "media" / "film.mp4").symlink_to(tmp_path / "secret.mp4")
    assert client.get(f"/api/projects/{name}").status_code == 404
    assert client.put(f"/api/projects/{name}/procedure", content=b"1. Overwrite it.").status_code == 404
    assert target.read_text() == "secret"
    (folder / name / "procedure.txt").unlink()
    answer = client.patch(f"/api/projects/{name}", json={"video": {"place": "upload", "name": "film.mp4"}})
    assert answer.status_code == 404
    (folder / "linked").symlink_to(tmp_path / "videos")
    assert client.get("/api/projects/linked").status_code == 404


def test_videos_are_served_in_ranges(client: Any, videos: Path) -> None:
    name = with_graph(client)
    data = (videos / "film.mp4").read_bytes()
    assert client.get(f"/api/projects/{name}/video").status_code == 404
    client.patch(f"/api/projects/{name}", json={"video": {"place": "folder", "name": "film.mp4"}})
    get = lambda span: client.get(f"/api/projects/{name}/video", headers={"range": span})  # noqa: E731
    whole = client.get(f"/api/projects/{name}/video")
    assert (whole.content, whole.headers["content-type"]) == (data, "video/mp4")
    for span, expected in (("bytes=0-9", data[:10]), ("bytes=100-", data[100:]), ("bytes=-7", data[-7:])):
        answer = get(span)
        assert (answer.status_code, answer.content) == (206, expected)
    assert get("bytes=999999-").status_code == 416
    (videos / "film.mp4").unlink()
    assert client.get(f"/api/projects/{name}/video").status_code == 404
    assert client.get(f"/api/projects/{name}").json()["video"]["there"] is False


# -- jobs, corrections, results ------------------------------------------------------------------------------------


def test_grounding_needs_a_graph_and_a_video(client: Any) -> None:
    name = client.post("/api/projects", json={}).json()["name"]
    assert "no flow graph yet" in client.post(f"/api/projects/{name}/ground").json()["error"]
    name = with_graph(client)
    assert "choose a video" in client.post(f"/api/projects/{name}/ground").json()["error"]
    for path in ("result", "view", "export/json", "report", "result/video"):
        assert client.get(f"/api/projects/{name}/{path}").status_code == 404, path


def grounded(client: Any, name: str) -> dict[str, Any]:
    job = client.post(f"/api/projects/{name}/ground").json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "done", ended
    return dict(client.get(f"/api/projects/{name}/result").json())


def test_corrections_are_kept_exactly_by_the_next_grounding(client: Any, folder: Path, tmp_path: Path) -> None:
    name = client.post("/api/projects/sample").json()["name"]
    client.put(f"/api/projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
    result = grounded(client, name)
    assert client.get(f"/api/projects/{name}").json()["result"]["current"] is True

    # The same as the command line gives, but for where it was made.
    from graph2vid.cli import main

    file = tmp_path / "cli.json"
    assert (
        main(["ground", str(SAMPLE.flow), str(SAMPLE.video), "--captions", str(SAMPLE.captions), "-o", str(file)]) == 0
    )
    other = stored(file)
    studio = result["options"].pop("studio")
    assert studio["video"] == {"place": "sample", "name": "spaghetti.mp4"}
    assert result["options"]["settings"].pop("hot_words") is False  # an edit of the graph does not transcribe anew
    del other["options"]["settings"]["hot_words"]
    for key in (
        "segments",
        "labels",
        "order",
        "not_shown",
        "cost",
        "cues",
        "evidence",
        "options",
        "clip_seconds",
        "duration",
    ):
        assert result[key] == other[key], key

    segments = {segment["step"]: segment for segment in result["segments"]}
    kept, wrong = sorted(segments, key=lambda step: segments[step]["start"])[1:3]
    span = segments[kept]["start"] - 2, segments[kept]["end"] + 1
    correct = lambda **what: client.post(f"/api/projects/{name}/corrections", json=what)  # noqa: E731
    assert correct(kind="exact", step=kept, start=span[0], end=span[1]).status_code == 201
    assert (
        correct(kind="forbid", step=wrong, start=segments[wrong]["start"], end=segments[wrong]["end"]).status_code
        == 201
    )
    assert correct(kind="background", start=100, end=None).status_code == 201
    assert correct(kind="exact", step="nonsense", start=1, end=2).status_code == 422
    assert client.get(f"/api/projects/{name}").json()["result"]["current"] is False

    again = Grounding.from_json(grounded(client, name))
    (segment,) = again.segments_of(kept)
    assert (segment.start, segment.end) == span
    for part in again.segments_of(wrong):
        assert part.end <= segments[wrong]["start"] or part.start >= segments[wrong]["end"]
    assert (again.labels[100:] == -1).all()
    assert again.options["constraints"] == [
        {"kind": "show", "step": kept, "start": span[0], "stop": span[1]},
        {"kind": "within", "step": kept, "start": span[0], "stop": span[1]},
        {"kind": "forbid", "step": wrong, "start": segments[wrong]["start"], "stop": segments[wrong]["end"]},
        {"kind": "background", "step": None, "start": 100.0, "stop": None},
    ]
    listed = next(one for one in client.get("/api/projects").json() if one["name"] == name)
    assert 0 < listed["confidence"] < 1 and listed["doubtful"] == sum(part.is_doubtful for part in again.segments)
    view = client.get(f"/api/projects/{name}/view").json()
    assert [row["name"] for row in view["rows"]] == ["Before"]
    assert view["video"] == {"url": f"/api/projects/{name}/result/video", "name": "spaghetti.mp4"}

    # What contradicts the order and another correction is refused when it is made, and names that.
    last = again.flow.ids[again.order[-1]]
    refused = correct(kind="exact", step=last, start=0, end=1)
    assert refused.status_code == 422 and refused.json()["other"] == 0
    assert "must be finished before" in refused.json()["error"] and "you said that step" in refused.json()["error"]
    assert len(client.get(f"/api/projects/{name}/corrections").json()) == 3

    # What cannot be done fails with the reason, and nothing is lost by it; undo brings all back.
    client.delete(f"/api/projects/{name}/corrections/0")
    assert correct(kind="exact", step=last, start=0.1, end=0.2).status_code == 201
    job = client.post(f"/api/projects/{name}/ground").json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "failed"
    assert "no clip has its middle in this span" in ended["message"]
    assert Grounding.from_json(client.get(f"/api/projects/{name}/result").json()) == again
    assert client.get(f"/api/projects/{name}").json()["undo_words"] == "the correction"
    for _ in range(2):
        assert client.post(f"/api/projects/{name}/undo").status_code == 200
    kinds = [one["kind"] for one in client.get(f"/api/projects/{name}/corrections").json()]
    assert sorted(kinds) == ["background", "exact", "forbid"]
    assert client.post(f"/api/projects/{name}/redo").json()["can_undo"] is True
    assert len(client.get(f"/api/projects/{name}/corrections").json()) == 2
    client.post(f"/api/projects/{name}/undo")
    assert len(client.delete(f"/api/projects/{name}/corrections/0").json()) == len(
        stored(folder / name / "corrections.json")["corrections"]
    )

    # The order is checked as the command line does, and anew for another result.
    assert client.get(f"/api/projects/{name}/check").status_code == 404
    job = client.post(f"/api/projects/{name}/check").json()
    assert wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())["state"] == "done"
    again.save(tmp_path / "again.json")
    assert main(["check", str(tmp_path / "again.json"), "--json", str(tmp_path / "check.json")]) == 0
    assert client.get(f"/api/projects/{name}/check").json() == stored(tmp_path / "check.json")
    found = stored(tmp_path / "check.json")["deviations"]
    shown = client.get(f"/api/projects/{name}/view").json()["check"]
    assert [again.flow.ids[one["step"]] for one in shown["deviations"]] == [one["step"] for one in found]
    (folder / name / "check.json").write_text('{"format": "graph2vid-check", "version": 1, "deviations": [4]}')
    assert client.get(f"/api/projects/{name}/view").json()["check"] is None  # damaged

    # Every format can be had, and the report.
    for format in client.get("/api/about").json()["formats"]:
        answer = client.get(f"/api/projects/{name}/export/{format}")
        assert answer.status_code == 200, (format, answer.text)
        assert answer.headers["content-disposition"].startswith("attachment")
    assert client.get(f"/api/projects/{name}/export/nonsense").status_code == 422
    report = client.get(f"/api/projects/{name}/report")
    assert report.headers["content-disposition"].startswith("attachment")
    assert "<!doctype html>" in report.text


def test_a_job_can_be_cancelled_and_told(client: Any, folder: Path) -> None:
    name = client.post("/api/projects/sample").json()["name"]
    job = client.post(f"/api/projects/{name}/parse", json={"parser": "rules"}).json()
    assert client.post(f"/api/projects/{name}/parse", json={"parser": "bag"}).status_code == 429
    assert client.delete(f"/api/jobs/{job['id']}").status_code == 200
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json(), 10)
    assert ended["state"] == "cancelled"
    assert client.get(f"/api/projects/{name}").json()["flow"] is None
    assert not list((folder / name).glob(".job-*"))
    events = client.get(f"/api/jobs/{job['id']}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    assert '"state": "cancelled"' in events.text
    assert client.get("/api/jobs/nonsense").status_code == 404
    assert client.post(f"/api/projects/{name}/parse", json={"parser": "nonsense"}).status_code == 422


def test_a_deleted_project_ends_its_job(client: Any, folder: Path) -> None:
    name = client.post("/api/projects/sample").json()["name"]
    job = client.post(f"/api/projects/{name}/parse", json={"parser": "rules"}).json()
    time.sleep(0.2)
    assert client.delete(f"/api/projects/{name}").status_code == 204
    assert wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json(), 10)["state"] == "cancelled"
    assert not (folder / name).exists()
    assert not list(folder.glob(".gone-*"))


def test_two_windows_do_not_overwrite_the_procedure_of_one_another(client: Any) -> None:
    path = f"/api/projects/{with_graph(client)}"
    seen = client.get(path).json()["procedure_revision"]
    first = client.put(f"{path}/procedure", params={"revision": seen}, content=b"1. Cut the tomato.")
    assert first.status_code == 200
    second = client.put(f"{path}/procedure", params={"revision": seen}, content=b"1. Peel the tomato.")
    assert second.status_code == 409 and "changed elsewhere" in second.json()["error"]
    assert client.get(path).json()["procedure"] == "1. Cut the tomato."
    seen = first.json()["procedure_revision"]
    assert client.put(f"{path}/procedure", params={"revision": seen}, content=b"1. Peel it.").status_code == 200


@pytest.mark.parametrize("number", [10**30, 10**29, 10**16])
def test_numbers_that_could_not_be_read_again_are_not_written(client: Any, number: int) -> None:
    path = f"/api/projects/{with_graph(client)}"
    answer = client.patch(path, json={"min_clips": number})
    assert answer.status_code == 422 and answer.json()["error"].startswith("min_clips must be a whole number")
    assert client.get(path).json()["min_clips"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 here")
def test_names_that_are_not_utf_8_can_be_chosen(client: Any, videos: Path) -> None:
    pytest.importorskip("av", reason="needs graph2vid[media]")
    for suffix, data in ((b"mp4", VIDEO), (b"vtt", CAPTIONS)):
        Path(os.fsdecode(os.fsencode(videos) + b"/caf\xe9." + suffix)).write_bytes(data)
    path = f"/api/projects/{with_graph(client)}"
    shown = "caf\ufffd.mp4"
    assert {"caf\ufffd.mp4", "caf\ufffd.vtt"} <= {file["name"] for file in client.get(f"{path}/media").json()}
    media = {"video": {"place": "folder", "name": shown}, "captions": {"place": "folder", "name": "caf\ufffd.vtt"}}
    assert client.patch(path, json=media).json()["video"] == {"place": "folder", "name": shown, "there": True}
    for work in ("ground", "check", "clips"):
        job = client.post(f"{path}/{work}").json()
        assert wait_for(lambda job=job: client.get(f"/api/jobs/{job['id']}").json())["state"] == "done"
    assert client.get(f"{path}/view").json()["video"]["name"] == shown
    assert client.get(f"{path}/video").content == client.get(f"{path}/result/video").content == VIDEO
    for answer in ("export/elan", "export/via3", "exports/csv", "report", "report?embed=true", "still", "film"):
        assert client.get(f"{path}/{answer}").status_code == 200, answer
    Path(os.fsdecode(os.fsencode(videos) + b"/caf\xe8.mp4")).write_bytes(VIDEO)  # it reads the same
    assert client.get(path).json()["video"]["there"] is False


def test_a_step_keeps_its_number_and_an_outdated_result_says_so(client: Any) -> None:
    """The number and the colour are those of the graph as it is now, in the editor and in the result."""
    name = with_graph(client)
    captions = {"captions": {"place": "folder", "name": "more/film.vtt"}, "clip_seconds": 0.5}
    assert client.patch(f"/api/projects/{name}", json=captions).status_code == 200
    job = client.post(f"/api/projects/{name}/ground").json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "done" and ended["seconds"] >= 0, ended
    assert client.get(f"/api/projects/{name}").json()["result"]["outdated"] == []
    client.post(f"/api/projects/{name}/edits", json={"edit": {"op": "remove-step", "step": "a"}})
    state = client.get(f"/api/projects/{name}").json()
    assert state["result"]["outdated"] == ["graph"] and not state["result"]["current"]
    steps = client.get(f"/api/projects/{name}/view").json()["steps"]
    assert [(step["id"], step["number"]) for step in steps] == [("a", None), ("b", 1), ("c", 2)]
    assert [step["colour"] for step in steps[1:]] == [box["colour"] for box in state["picture"]["boxes"]]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("is it right? (--embedder names one for other languages)", "is it right?"),
        ("at most 6 are taken (--max-hours): is a time wrong?", "at most 6 are taken: is a time wrong?"),
        ("use --clip-seconds 3", "use the setting “clip seconds” 3"),
    ],
)
def test_messages_have_no_flags(message: str, words: str) -> None:
    assert in_words(message) == words


def test_every_export_format_has_a_name_for_people() -> None:
    from graph2vid.export import FORMATS
    from graph2vid.studio.api import _TITLES

    assert set(FORMATS) <= set(_TITLES)


def test_the_page_names_every_module_that_it_needs() -> None:
    """So that browsers fetch all of them at once."""
    from graph2vid.report import STATIC as VIEW
    from graph2vid.studio.app import STATIC

    folders = {"/view/": VIEW, "/static/": STATIC}
    needed, waiting = set(), ["/static/studio.js"]
    while waiting:
        name = waiting.pop()
        folder = next(prefix for prefix in folders if name.startswith(prefix))
        text = (folders[folder] / name.removeprefix(folder)).read_text(encoding="utf-8")
        found = {
            one if one.startswith("/") else folder + one.removeprefix("./")
            for one in re.findall(r'from "([^"]+)"', text)
        }
        waiting += found - needed
        needed |= found
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'modulepreload" href="([^"]+)"', page)) == needed
