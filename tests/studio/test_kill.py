"""kill -9 at any moment: what was answered is there again, nothing is half, and no process lives on."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ending import SECONDS, descendants, left
from graph2vid.sample import NarratedFiles
from graph2vid.studio.edits import History
from studios import Server, serving, stored

SAMPLE = NarratedFiles()
FLOW = b"a: cut the tomato\nb: cut the cucumber\nc: mix everything\na -> c\nb -> c\n"


def children_of(process: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == process:
                found.append(int(entry.name))
    return found


def is_alive(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_killed_in_the_middle_of_a_job_and_of_an_upload(folder: Path) -> None:
    with serving(folder) as server:
        name = server.ask("POST", "projects/sample")["name"]
        job = server.ask("POST", f"projects/{name}/parse", json={"parser": "rules"})
        until = time.monotonic() + 10
        while not (workers := children_of(server.process.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(workers) == 1
        time.sleep(0.3)
        assert server.ask("GET", f"jobs/{job['id']}")["state"] == "running"

        def slowly() -> Iterator[bytes]:
            yield b"\0\0\0\x20ftypisom" + bytes(100_000)
            time.sleep(0.3)
            server.kill()
            yield bytes(100_000)

        with pytest.raises(httpx.TransportError):
            httpx.put(f"{server.address}api/projects/{name}/media/film.mp4", content=slowly(), headers=server.headers)
        until = time.monotonic() + 10
        while is_alive(workers[0]) and time.monotonic() < until:
            time.sleep(0.02)
        assert not is_alive(workers[0])
    assert list((folder / name).glob(".job-*"))
    with serving(folder) as server:
        state = server.ask("GET", f"projects/{name}")
        assert state["job"]["state"] == "interrupted"
        assert "run it again" in state["job"]["message"]
        assert state["flow"] is None
        assert state["procedure"].startswith("Spaghetti")
        assert not list((folder / name).glob(".*"))
        assert not list((folder / name / "media").iterdir())
        job = server.wait(server.ask("POST", f"projects/{name}/parse", json={"parser": "linear"}))
        assert job["state"] == "done"


def test_killed_in_the_middle_of_saves(folder: Path) -> None:
    random.seed(7)
    answered: list[str] = []
    sent: list[str] = []

    def write(server: Server, name: str) -> None:
        """Rename a step as fast as the server answers; note what was sent, and what was answered."""
        with httpx.Client(
            base_url=f"{server.address}api/projects/{name}/", timeout=20, headers=server.headers
        ) as client:
            while True:
                text = f"cut the tomato {len(sent)} {'x' * random.randint(0, 1500)}"
                sent.append(text)
                try:
                    answer = client.post("edits", json={"edit": {"op": "rename", "step": "a", "text": text}})
                    assert answer.status_code == 200
                    answered.append(text)
                    correction = {"kind": "forbid", "step": "a", "start": len(sent), "end": len(sent) + 1}
                    client.post("corrections", json=correction)
                except httpx.TransportError:
                    return

    with serving(folder) as server:
        name = server.ask("POST", "projects", json={"title": "Salad"})["name"]
        server.ask("PUT", f"projects/{name}/flow", params={"name": "x.flow"}, content=FLOW)
        server.kill()
    for _ in range(2):
        before = len(answered)
        with serving(folder) as server:
            writer = threading.Thread(target=write, args=(server, name))
            writer.start()
            while len(answered) < before + 3:
                time.sleep(0.005)
            time.sleep(0.1 * random.random())
            server.kill()
            writer.join()
        # Nothing that was answered is lost; what was in flight is there, or not, but never half.
        history = History.from_json(stored(folder / name / "edits.json"), "edits.json")
        assert history.draft is not None
        assert history.draft.flow.texts[0] in (answered[-1], sent[-1])
        assert stored(folder / name / "corrections.json")["corrections"]
    with serving(folder) as server:
        state = server.ask("GET", f"projects/{name}")
        assert state["flow"]["steps"][0]["text"] == history.draft.flow.texts[0]
        assert state["flow"] == stored(folder / name / "flow.json")
        undone = server.ask("POST", f"projects/{name}/undo")
        assert undone["flow"]["steps"][0]["text"] in sent[-3:-1]
    assert not list(folder.rglob(".*.part"))


def one_of_everything(client: httpx.Client, names: list[str], broken: list[str]) -> None:
    """Ask for something, whatever it is; note projects that are made and deleted, and what the server broke on."""
    name = random.choice(names)
    span = {"start": random.randint(0, 50), "end": 60}
    rename = {"op": "rename", "step": "fry", "text": f"fry {random.random()}"}
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", f"{name}/media/{random.choice('ab')}.mp4", {"content": SAMPLE.video.read_bytes()}),
        ("PUT", f"{name}/media/c.vtt", {"content": SAMPLE.captions.read_bytes()}),
        ("PUT", f"{name}/procedure", {"content": b"1. Cut it.\n2. Mix it.\n"}),
        ("POST", f"{name}/edits", {"json": {"edit": rename}}),
        ("POST", f"{name}/undo", {}),
        ("POST", f"{name}/parse", {"json": {"parser": "linear"}}),
        ("POST", f"{name}/ground", {}),
        ("POST", f"{name}/check", {}),
        ("POST", f"{name}/corrections", {"json": {"kind": "forbid", "step": "fry", **span}}),
        ("DELETE", f"{name}/corrections/0", {}),
        ("PATCH", name, {"json": {"title": f"{random.random()}"}}),
        ("POST", "sample", {}),
        ("DELETE", name, {}),
    ]
    method, path, options = random.choices(asked, [3, 1, 1, 3, 1, 1, 2, 1, 3, 1, 1, 1, len(names) > 3])[0]
    if (method, path) == ("DELETE", name) and name in names:
        names.remove(name)
    answer = client.request(method, path, **options)
    if answer.status_code >= 500:
        broken.append(f"{method} {path}: {answer.text}")
    if path == "sample":
        made = answer.json()["name"]
        client.put(f"{made}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
        names.append(made)


@pytest.mark.slow
def test_killed_in_the_middle_of_anything(folder: Path) -> None:
    random.seed(3)
    broken: list[str] = []
    whole = {file.stat().st_size for file in (SAMPLE.video, SAMPLE.captions)}

    def ask(server: Server, names: list[str]) -> None:
        with (
            httpx.Client(base_url=f"{server.address}api/projects/", timeout=20, headers=server.headers) as client,
            contextlib.suppress(httpx.TransportError),
        ):
            while not broken:
                one_of_everything(client, names, broken)

    for _ in range(10):
        with serving(folder) as server:
            found = server.ask("GET", "projects")
            assert [project["problem"] for project in found if project["problem"]] == []
            names = [project["name"] for project in found] or [server.ask("POST", "projects/sample")["name"]]
            for name in names:
                state = server.ask("GET", f"projects/{name}")
                assert state["flow"] is None or state["flow"] == stored(folder / name / "flow.json")
                assert state["result"] is None or server.ask("GET", f"projects/{name}/view")["segments"] is not None
                assert not list((folder / name).glob(".*"))
                assert {file.stat().st_size for file in (folder / name / "media").iterdir()} <= whole
            askers = [threading.Thread(target=ask, args=(server, names)) for _ in range(3)]
            for asker in askers:
                asker.start()
            time.sleep(1 + 3 * random.random())
            server.kill()
            for asker in askers:
                asker.join()
            assert broken == []


def test_the_command_says_what_is_wrong(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from graph2vid.cli import main

    with serving(folder):
        assert main(["studio", str(folder), "--port", "0", "--no-open"]) == 2
        assert "another studio is using" in capsys.readouterr().err
    assert main(["studio", str(folder), "--videos", str(tmp_path / "nothing"), "--no-open"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert main(["studio", str(folder), "--token", "short", "--no-open"]) == 2
    assert "a token has" in capsys.readouterr().err
    assert main(["studio", str(folder), "--host", "203.0.113.1", "--no-open"]) == 2
    assert "cannot listen on 203.0.113.1" in capsys.readouterr().err


def test_other_addresses_need_the_token(folder: Path) -> None:
    with serving(folder, "--host", "0.0.0.0") as server:
        address, _, token = server.opened.partition("?token=")
        assert len(token) >= 32
        here = f"http://127.0.0.1:{address.rpartition(':')[2]}"
        assert httpx.get(f"{here}api/projects").status_code == 401
        assert httpx.get(f"{here}api/projects", headers={"authorization": f"Bearer {token}"}).status_code == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_studio_with_a_job_and_a_listener(folder: Path, number: signal.Signals) -> None:
    """In the middle of a job whose progress a browser follows: nothing is left within five seconds."""
    with serving(folder) as server:
        name = server.ask("POST", "projects/sample")["name"]
        server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
        server.ask("PATCH", f"projects/{name}", json={"captions": None})  # speech is transcribed, which takes a while
        job = server.ask("POST", f"projects/{name}/ground")
        with httpx.stream(
            "GET", f"{server.address}api/jobs/{job['id']}/events", timeout=60, headers=server.headers
        ) as events:
            stages = (line for line in events.iter_lines() if "transcribing" in line)
            assert next(stages)
            seen = descendants(server.process.pid)
            assert len(seen) >= 2
            server.process.send_signal(number)
            until = time.monotonic() + SECONDS
            while (server.process.poll() is None or left(seen)) and time.monotonic() < until:
                time.sleep(0.02)
            assert server.process.poll() is not None, "the studio runs on"
            assert not left(seen), "a process is left"
    with serving(folder) as server:
        # Not "running": a quick processor may have been done before it was told to end.
        assert server.ask("GET", f"projects/{name}")["job"]["state"] in ("interrupted", "cancelled", "done")
