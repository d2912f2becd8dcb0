"""Stills, small pictures, the waveform, and clips: made from the video once, and kept."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from graph2vid.sample import NarratedFiles
from studios import wait_for

JPEG = b"\xff\xd8\xff"


def sample(client: Any) -> str:
    name = client.post("/api/projects/sample").json()["name"]
    flow = NarratedFiles().flow.read_bytes()
    client.put(f"/api/projects/{name}/flow", params={"name": "s.flow"}, content=flow)
    return str(name)


def test_pictures_and_waveform_are_made_once(client: Any, folder: Path) -> None:
    name = sample(client)
    path = f"/api/projects/{name}"
    assert client.get(f"{path}/still").content.startswith(JPEG)
    assert client.get(f"{path}/film").json()["job"] is None  # nobody has asked for it yet
    assert client.get(f"{path}/film/strip").status_code == 404
    job = client.post(f"{path}/film").json()["job"]
    again = client.post(f"{path}/film").json()["job"]
    assert again is None or again["id"] == job["id"]
    assert wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())["state"] == "done"
    film = client.post(f"{path}/film").json()
    assert film["job"] is None and film["pictures"] > 50 and max(film["peaks"]) > 40 and film["height"] == 54
    assert client.get(f"{path}/film/strip").content.startswith(JPEG)
    kept = [*(folder / name / "film").glob("*/*")]
    assert {one.name for one in kept} == {"still.jpg", "strip.jpg", "film.json"}
    assert not [*(folder / name).glob(".job-*")]
    client.patch(path, json={"video": None})
    assert client.get(f"{path}/still").status_code == 404
    assert client.post(f"{path}/film").status_code == 404


def test_a_file_that_is_no_film_is_said_to_be_none(client: Any) -> None:
    name = sample(client)
    client.patch(f"/api/projects/{name}", json={"video": {"place": "folder", "name": "film.mp4"}})
    answer = client.get(f"/api/projects/{name}/still")
    assert answer.status_code == 404 and "film.mp4" in answer.json()["error"] and "/" not in answer.json()["error"]
    job = client.post(f"/api/projects/{name}/film").json()["job"]
    assert wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())["state"] == "failed"


def test_clips_and_stills_of_each_step(client: Any) -> None:
    name = sample(client)
    path = f"/api/projects/{name}"
    assert client.post(f"{path}/clips").status_code == 404 and client.get(f"{path}/clips").status_code == 404
    for what in ("ground", "clips"):
        job = client.post(f"{path}/{what}").json()
        assert wait_for(lambda job=job: client.get(f"/api/jobs/{job['id']}").json())["state"] == "done"
    found = zipfile.ZipFile(io.BytesIO(client.get(f"{path}/clips").content)).namelist()
    assert sum(one.endswith(".mp4") for one in found) == 10 and sum(one.endswith(".jpg") for one in found) == 10
