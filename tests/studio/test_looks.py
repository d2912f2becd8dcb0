"""How the pages look: ten states, light and dark, at three widths, beside pictures of them that were looked at.

The pictures are small (a quarter of the size, 16 greys) and are compared as such: that parts have moved, are missing or
have changed their shade shows; the drawing of a letter does not. ``python tests/studio/test_looks.py`` makes them anew.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from browser import chromium, wait_until
from graph2vid.sample import NarratedFiles
from studios import Server, serving, studio_page
from task_corpus import SAYINGS, STEPS, made_up

KEPT = Path(__file__).parent / "looks"
WIDTHS = {"wide": (1440, 900), "usual": (1280, 720), "phone": (390, 844)}
SHRINK, GREYS = 4, 16
MOST_DIFFERENT = 0.02
"""The share of the small picture's pixels that may differ, by more than two shades of grey."""

Grey = NDArray[np.uint8]


def shrunk(png: bytes) -> Grey:
    """Return a screenshot as a small picture of few greys [H, W]."""
    import av

    with av.open(io.BytesIO(png), format="png_pipe") as container:
        image = next(container.decode(video=0)).to_ndarray(format="gray").astype(np.float32)
    height, width = (side // SHRINK for side in image.shape)
    small = image[: height * SHRINK, : width * SHRINK].reshape(height, SHRINK, width, SHRINK).mean(axis=(1, 3))
    return np.asarray((small * (GREYS - 1) / 255).round(), dtype=np.uint8)


def write_grey(path: Path, picture: Grey) -> None:
    """Write a picture of 16 greys as PNG."""
    padded = np.pad(picture, ((0, 0), (0, picture.shape[1] % 2)))
    rows = b"".join(b"\0" + (row[0::2] << 4 | row[1::2]).tobytes() for row in padded)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 4, 0, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    made = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(made))


def read_grey(path: Path) -> Grey:
    """Read what :func:`write_grey` wrote."""
    data, at, body = path.read_bytes(), 8, b""
    width = height = 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        part = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", part[:8])
        body += part if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, -1)[:, 1:]
    return np.stack([rows >> 4, rows & 15], axis=2).reshape(height, -1)[:, :width]


# -- the states ------------------------------------------------------------------------------------------------


class Films:
    """A studio with a project of the sample, grounded, checked and corrected, and one of four videos."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.one = server.ask("POST", "projects/sample")["name"]
        flow = NarratedFiles().flow.read_bytes()
        server.ask("PUT", f"projects/{self.one}/flow", params={"name": "s.flow"}, content=flow)
        for job in ("ground", "check"):
            assert server.wait(server.ask("POST", f"projects/{self.one}/{job}"))["state"] == "done"
        film = server.ask("POST", f"projects/{self.one}/film")["job"]
        server.wait(film)
        self.many = server.ask("POST", "projects", json={"title": "Breakfast"})["name"]
        text = "\n".join(f"s{at}: {step}" for at, step in enumerate(STEPS))
        server.ask("PUT", f"projects/{self.many}/flow", params={"name": "b.flow"}, content=text.encode())
        for at in range(4):
            captions = {"place": "folder", "name": f"v{at}.vtt"}
            server.ask("POST", f"projects/{self.many}/videos", json={"captions": captions})
        assert server.wait(server.ask("POST", f"projects/{self.many}/ground-all"))["state"] == "done"
        self.second = server.ask("GET", f"projects/{self.many}/videos")["videos"][1]["id"]


def chosen(page: Any) -> None:
    page.evaluate("document.querySelector('.lanes [data-index=\"3\"]').click()")
    wait_until(page, "[...document.querySelectorAll('video')].every(one => !one.seeking)")


def refused(page: Any) -> None:
    page.evaluate("import('/static/parts.js').then(({ toast }) => toast('Step 2 is shown there, you said.', 'bad'))")
    page.locator(".toast.bad").wait_for()


STATES: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "home": ("", ".project-card", lambda page: None),
    "procedure": ("{one}/procedure", "#procedure", lambda page: None),
    "graph": ("{one}/graph", ".node", lambda page: page.locator(".node").nth(4).click()),
    "files": ("{one}/video", ".checks", lambda page: None),
    "result": ("{one}/result", ".lanes .segment", lambda page: None),
    "chosen": ("{one}/result", ".lanes .segment", chosen),
    "review": ("{one}/result", ".lanes .segment", lambda page: page.locator('[data-tab="review"]').click()),
    "refused": ("{one}/result", ".lanes .segment", refused),
    "videos": ("{many}/video", ".next-video", lambda page: None),
    "compare": ("{many}/compare/first/{second}", ".compare-table tbody tr", lambda page: None),
}


def looks(
    films: Films, browser: Any, width: str, dark: bool, *, hide: bool = True, **options: Any
) -> Iterator[tuple[str, bytes]]:
    """Go through the states, and take a picture of each; ``hide`` what the browser draws itself."""
    wide, high = WIDTHS[width]
    options["reduced_motion"] = "reduce"
    with studio_page(films.server, browser, dark=dark, width=wide, height=high, **options) as page:
        for name, (path, there, prepare) in STATES.items():
            page.goto("about:blank")
            page.goto(f"/#/{path.format(**vars(films))}")
            page.locator(there).first.wait_for()
            wait_until(page, "[...document.querySelectorAll('video')].every(one => one.readyState > 1)")
            wait_until(page, "[...document.images].every(one => one.complete)")
            prepare(page)
            page.mouse.move(1, 1)
            if hide:  # and what changes by itself
                gone = "one => one.style.setProperty('visibility', 'hidden')"
                page.evaluate(f"document.querySelectorAll('video, .card-foot .dim').forEach({gone})")
            page.wait_for_timeout(350)
            yield name, page.screenshot(animations="disabled", caret="hide")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Films]:
    """The projects that are looked at."""
    folder = tmp_path_factory.mktemp("looks")
    (folder / "films").mkdir()
    made_up(folder / "films", 4, sayings=SAYINGS)
    with serving(folder / "projects", "--videos", str(folder / "films")) as server:
        yield Films(folder, server)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_look_as_they_did(films: Films, browser: Any, width: str, dark: bool, tmp_path: Path) -> None:
    wrong = {}
    for name, png in looks(films, browser, width, dark):
        kept, now = read_grey(KEPT / f"{name}-{width}-{'dark' if dark else 'light'}.png"), shrunk(png)
        assert kept.shape == now.shape, name
        different = float((np.abs(kept.astype(int) - now) > 2).mean())
        if different > MOST_DIFFERENT:
            wrong[name] = f"{100 * different:.1f}% differ: see {tmp_path / name}.png"
            (tmp_path / f"{name}.png").write_bytes(png)
    assert not wrong, wrong


def test_the_kept_pictures_are_small_and_all_there() -> None:
    names = {f"{name}-{width}-{scheme}.png" for name in STATES for width in WIDTHS for scheme in ("light", "dark")}
    files = [*KEPT.iterdir()]
    assert {file.name for file in files} == names
    assert max(file.stat().st_size for file in files) < 12_000
    assert sum(file.stat().st_size for file in files) < 400_000


def test_a_picture_is_read_as_it_was_written(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, GREYS, (7, 9), dtype=np.uint8)
    write_grey(tmp_path / "x.png", picture)
    assert (read_grey(tmp_path / "x.png") == picture).all()


def main(folder: Path) -> None:
    """Make the kept pictures anew, and whole screenshots of them in ``folder``, to be looked at."""
    import tempfile

    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        (Path(place) / "films").mkdir()
        made_up(Path(place) / "films", 4, sayings=SAYINGS)
        with serving(Path(place) / "projects", "--videos", f"{place}/films") as server:
            films = Films(Path(place), server)
            for width in WIDTHS:
                for dark in (False, True):
                    for name, png in looks(films, browser, width, dark):
                        file = f"{name}-{width}-{'dark' if dark else 'light'}.png"
                        write_grey(KEPT / file, shrunk(png))
                        (folder / file).write_bytes(png)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
