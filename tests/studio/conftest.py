"""A studio in this process, and folders for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import chromium

pytest.importorskip("fastapi", reason="the extra [studio] is not installed")
pytest.importorskip("uvicorn", reason="the extra [studio] is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield one browser for all tests of a module."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    with chromium() as browser:
        yield browser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the projects are kept."""
    return tmp_path / "projects"


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """A folder of the user's own videos, with a secret beside it and links that lead there."""
    videos = tmp_path / "videos"
    (videos / "more").mkdir(parents=True)
    (tmp_path / "secret.mp4").write_bytes(b"\0\0\0\x20ftypisom secret")
    (videos / "film.mp4").write_bytes(b"\0\0\0\x20ftypisom film" + bytes(range(256)) * 40)
    (videos / "more" / "film.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nHello there.\n")
    (videos / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    (videos / "away").symlink_to(tmp_path)
    return videos


@pytest.fixture
def client(folder: Path, videos: Path) -> Iterator[Any]:
    """The application, asked as a browser on this machine would."""
    from fastapi.testclient import TestClient

    from graph2vid.studio.app import create_app

    app = create_app(folder, videos=videos, upload_limit=1 << 20)
    with TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as client:
        yield client
