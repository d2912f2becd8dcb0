"""A studio for the tests: a server in a process of its own, and projects to begin with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from browser import chromium_page

COMMAND = (sys.executable, "-m", "graph2vid")


@dataclass
class Server:
    """A studio in a process of its own."""

    process: subprocess.Popen[bytes]
    opened: str
    """The address that it printed, with the token."""

    @property
    def address(self) -> str:
        """The address, without the token."""
        return self.opened.partition("?")[0]

    @property
    def headers(self) -> dict[str, str]:
        """What lets a program in."""
        return {"Authorization": f"Bearer {self.opened.partition('?token=')[2]}"}

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Ask the API, and return the JSON of its answer."""
        options["headers"] = self.headers | options.get("headers", {})
        answer = httpx.request(method, f"{self.address}api/{path}", timeout=20, **options)
        assert answer.status_code < 400, answer.text
        return answer.json()

    def wait(self, job: dict[str, Any], seconds: float = 60.0) -> dict[str, Any]:
        """Wait for the end of a job."""
        return wait_for(lambda: self.ask("GET", f"jobs/{job['id']}"), seconds)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the job that runs: it goes on, or notices that the studio is gone, only after the block."""
        until = time.monotonic() + 30
        while not (jobs := _children(self.process.pid)):
            assert time.monotonic() < until, "no job runs"
        for job in jobs:
            os.kill(job, signal.SIGSTOP)
        try:
            yield
        finally:
            for job in jobs:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(job, signal.SIGCONT)

    def kill(self) -> None:
        """End it as the power cut does."""
        self.process.kill()
        self.process.wait()


def _children(process: int) -> list[int]:
    listed = (path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children"))
    return [int(child) for text in listed for child in text.split()]


def wait_for(look: Any, seconds: float = 60.0) -> dict[str, Any]:
    """Look at a job until it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        job: dict[str, Any] = look()
        if job["state"] not in ("waiting", "running"):
            return job
        time.sleep(0.05)
    raise AssertionError(f"the job has not ended: {job}")


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Run ``graph2vid studio``."""
    process = subprocess.Popen(
        [*COMMAND, "studio", str(folder), "--port", "0", "--no-open", *options],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "GRAPH2VID_CACHE": f"{folder}-cache"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline().decode())
        assert found is not None
        yield Server(process, found[0])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextlib.contextmanager
def studio_page(server: Server, browser: Any = None, **options: Any) -> Iterator[Any]:
    """Open a page of a browser in the studio, as its owner; see :func:`browser.chromium_page`."""
    with chromium_page(browser, base_url=server.address, **options) as page:
        page.goto(server.opened)
        yield page


def made(client: Any, procedure: str = "1. Cut the tomato.\n2. Cut the cucumber.\n3. Mix everything.") -> str:
    """Make a project with a procedure and the graph of its listed order; return its name."""
    name = client.post("/api/projects", json={"title": "Salad"}).json()["name"]
    client.put(f"/api/projects/{name}/procedure", content=procedure.encode())
    job = client.post(f"/api/projects/{name}/parse", json={"parser": "linear"}).json()
    ended = wait_for(lambda: client.get(f"/api/jobs/{job['id']}").json())
    assert ended["state"] == "done", ended
    return str(name)


def with_graph(client: Any, edges: str = "a -> c\nb -> c", title: str = "Salad") -> str:
    """Make a project with a flow graph that is handed in; return its name."""
    name = client.post("/api/projects", json={"title": title}).json()["name"]
    text = f"a: cut the tomato\nb: cut the cucumber\nc: mix everything\n{edges}\n"
    answer = client.put(f"/api/projects/{name}/flow", params={"name": "salad.flow"}, content=text.encode())
    assert answer.status_code == 200, answer.text
    return str(name)


def stored(path: Path) -> Any:
    """Return the JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))
