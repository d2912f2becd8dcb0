"""How the pages look: ten states, light and dark, at three widths, beside pictures of them that were looked at.

The pictures are small (a quarter of the size, 16 greys) and are compared as such: that parts have moved, are missing or
have changed their shade shows; the drawing of a letter does not. ``PYTHONPATH=tests python tests/studio/test_looks.py``
makes them anew, and whole screenshots in ``build/looks``, to be looked at. With another browser or other fonts than
those that they were made with, a difference means nothing, and the test skips.
"""

from __future__ import annotations

import contextlib
import io
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import graph2vid
from browser import axe_findings, chromium, wait_until
from graph2vid.footage import cut
from graph2vid.sample import NarratedFiles
from studios import Server, serving, studio_page
from task_corpus import SAYINGS, STEPS, made_up

KEPT = Path(__file__).parent / "looks"
STATIC = Path(graph2vid.__file__).parent / "report" / "static"
SAMPLE = NarratedFiles()
FILES = {"video": "mp4", "captions": "vtt"}
MADE_WITH = KEPT / "made-with.txt"
WIDTHS = {"wide": (1440, 900), "usual": (1280, 720), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SHRINK, GREYS = 4, 16
MOST_DIFFERENT = 0.005
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
    """A studio with three projects.

    ``one`` is the sample with its graph, grounded and checked; ``listed`` is the sample in the order as listed, which
    is not that of the video, with a correction; ``many`` has several videos, parts of the sample's with other captions.
    """

    def __init__(self, folder: Path, server: Server, number: int = 4, sayings: list[list[str]] = SAYINGS) -> None:
        self.server = server
        self.truth = made_up(folder, number, sayings=sayings)
        for path, start in zip(self.truth, (30, 0, 12, 40, 20, 5, 35, 25), strict=False):
            cut(SAMPLE.video, path.with_suffix(".mp4"), start, start + 60)
        self.one, self.listed = (server.ask("POST", "projects/sample")["name"] for _ in range(2))
        flow = SAMPLE.flow.read_bytes()
        server.ask("PUT", f"projects/{self.one}/flow", params={"name": "s.flow"}, content=flow)
        self._do(self.listed, "parse", json={"parser": "linear"})
        for project in (self.one, self.listed):
            for job in ("ground", "check"):
                self._do(project, job)
            server.wait(server.ask("POST", f"projects/{project}/film")["job"])
        step = server.ask("GET", f"projects/{self.listed}/result")["segments"][3]
        held = {"kind": "exact", **{key: step[key] for key in ("step", "start", "end")}}
        server.ask("POST", f"projects/{self.listed}/corrections", json=held)
        self.many = server.ask("POST", "projects", json={"title": "Breakfast"})["name"]
        text = "\n".join(f"s{at}: {step}" for at, step in enumerate(STEPS))
        server.ask("PUT", f"projects/{self.many}/flow", params={"name": "b.flow"}, content=text.encode())
        for at in range(number):
            media = {kind: {"place": "folder", "name": f"v{at}.{end}"} for kind, end in FILES.items()}
            server.ask("POST", f"projects/{self.many}/videos", json=media)
        self._do(self.many, "ground-all")
        self.second = server.ask("GET", f"projects/{self.many}/videos")["videos"][1]["id"]

    def _do(self, project: str, job: str, **options: Any) -> None:
        ended = self.server.wait(self.server.ask("POST", f"projects/{project}/{job}", **options))
        assert ended["state"] == "done", ended


@contextlib.contextmanager
def filmed(folder: Path, **options: Any) -> Iterator[Films]:
    """Run a studio with the projects that are looked at."""
    (folder / "films").mkdir(parents=True)
    with serving(folder / "projects", "--videos", str(folder / "films")) as server:
        yield Films(folder / "films", server, **options)


def choose(page: Any, index: int) -> None:
    page.evaluate(f"document.querySelector('.lanes [data-index=\"{index}\"]').click()")
    wait_until(page, "[...document.querySelectorAll('video')].every(one => !one.seeking)")


def refused(page: Any) -> None:
    """Let the segment after the corrected one begin before that has ended."""
    choose(page, 4)
    for _ in range(4):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("i")
    page.locator(".toast.bad").wait_for()
    wait_until(page, "[...document.querySelectorAll('video')].every(one => !one.seeking)")


STATES: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "home": ("", ".project-card", lambda page: None),
    "procedure": ("{one}/procedure", "#procedure", lambda page: None),
    "graph": ("{one}/graph", ".node", lambda page: page.locator(".node").nth(4).click()),
    "files": ("{one}/video", ".checks", lambda page: None),
    "result": ("{one}/result", ".lanes .segment", lambda page: None),
    "chosen": ("{one}/result", ".lanes .segment", lambda page: choose(page, 3)),
    "review": ("{listed}/result", ".lanes .segment", lambda page: page.locator('[data-tab="review"]').click()),
    "refused": ("{listed}/result", ".lanes .segment", refused),
    "videos": ("{many}/video", ".next-video", lambda page: None),
    "compare": ("{many}/compare/first/{second}", ".compare-table tbody tr", lambda page: None),
}
LOADED = "[...document.querySelectorAll('video')].every(one => one.readyState > 1)"
DRAWN = "new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go, 40))))"


def visits(films: Films, browser: Any, **options: Any) -> Iterator[tuple[str, Any]]:
    """Go through the states: the name of each, and the page that shows it."""
    wide, high = WIDTHS["wide"]
    with studio_page(films.server, browser, width=wide, height=high, reduced_motion="reduce", **options) as page:
        for name, (path, there, prepare) in STATES.items():
            page.goto("about:blank")
            page.goto(f"/#/{path.format(**vars(films))}")
            page.locator(there).first.wait_for()
            wait_until(page, f"{LOADED} && [...document.images].every(one => one.complete)")
            prepare(page)
            page.mouse.move(1, 1)
            yield name, page
        assert [one for one in page.errors if "422" not in one] == []  # but for what is refused


def looks(
    films: Films, browser: Any, widths: Iterable[str] = WIDTHS, *, hide: bool = True, **options: Any
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Go through the states, widths and schemes: the name of each picture, and what takes it.

    With ``hide`` nothing is seen that the browser draws itself, or that changes by itself.
    """
    for name, page in visits(films, browser, **options):
        for width in widths:
            page.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.evaluate("scrollTo(0, 0)")
                if hide:
                    gone = "one => one.style.setProperty('visibility', 'hidden')"
                    page.evaluate(f"document.querySelectorAll('video, .card-foot .dim').forEach({gone})")
                page.evaluate(DRAWN)
                yield f"{name}-{width}-{scheme}", partial(page.screenshot, animations="disabled", caret="hide")


def made_with(browser: Any) -> str:
    """Name the browser and the fonts that pages are drawn with."""
    page = browser.new_page()
    page.set_content(f"<style>{(STATIC / 'view.css').read_text(encoding='utf-8')}</style><p>Steps <b>1</b></p>")
    asked = page.context.new_cdp_session(page)
    asked.send("DOM.enable")
    asked.send("CSS.enable")
    root = asked.send("DOM.getDocument")["root"]["nodeId"]
    body = asked.send("DOM.querySelector", {"nodeId": root, "selector": "body"})["nodeId"]
    fonts = asked.send("CSS.getPlatformFontsForNode", {"nodeId": body})["fonts"]
    page.close()
    names = sorted({font["postScriptName"] for font in fonts})
    return ", ".join([f"Chromium {browser.version.partition('.')[0]}", *names])


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Films]:
    """The projects that are looked at."""
    with filmed(tmp_path_factory.mktemp("looks")) as films:
        yield films


def difference(kept: Grey, now: Grey) -> float:
    """Return the share of pixels that differ."""
    return 1.0 if kept.shape != now.shape else float((np.abs(kept.astype(int) - now) > 2).mean())


def test_pages_look_as_they_did(films: Films, browser: Any, tmp_path: Path) -> None:
    wrong = {}
    for name, picture in looks(films, browser):
        kept = read_grey(KEPT / f"{name}.png")
        for wait in (0.0, 0.3, 1.0):  # something may be on its way on a busy machine
            time.sleep(wait)
            different = difference(kept, shrunk(png := picture()))
            if different <= MOST_DIFFERENT:
                break
        else:
            (tmp_path / f"{name}.png").write_bytes(png)
            wrong[name] = f"{100 * different:.1f}% differ: see {tmp_path / name}.png"
    if wrong and (now := made_with(browser)) != (then := MADE_WITH.read_text(encoding="utf-8").strip()):
        pytest.skip(f"the kept pictures were made with {then}, and this is {now}: {len(wrong)} differ")
    assert not wrong, wrong


@pytest.mark.parametrize("change", ["moved", "gone", "shade"])
def test_what_has_changed_is_noticed(change: str) -> None:
    kept = read_grey(KEPT / "result-usual-light.png")
    now = kept.copy()
    part = np.s_[100:175, 80:310]  # the lanes
    now[part] = {"moved": np.roll(kept[part], 4, axis=1), "gone": 15, "shade": np.maximum(kept[part], 3) - 3}[change]
    assert difference(kept, kept) == 0 and difference(kept, now) > MOST_DIFFERENT


def test_every_state_is_accessible_light_and_dark(films: Films, browser: Any) -> None:
    found = {}
    for name, page in visits(films, browser):
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.evaluate(DRAWN)
            # Light and dark are the same elements: of the second only the colours are to be checked.
            found[f"{name}-{scheme}"] = axe_findings(page, *(["color-contrast"] if scheme == "dark" else []))
    assert len(found) == 20 and not any(found.values()), found


def test_the_kept_pictures_are_small_and_all_there() -> None:
    names = {f"{name}-{width}-{scheme}.png" for name in STATES for width in WIDTHS for scheme in ("light", "dark")}
    files = [*KEPT.iterdir()]
    assert {file.name for file in files} == {*names, MADE_WITH.name}
    assert MADE_WITH.read_text(encoding="utf-8").startswith("Chromium ")
    assert max(file.stat().st_size for file in files) < 12_000
    assert sum(file.stat().st_size for file in files) < 400_000


def test_a_picture_is_read_as_it_was_written(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, GREYS, (7, 9), dtype=np.uint8)
    write_grey(tmp_path / "x.png", picture)
    assert (read_grey(tmp_path / "x.png") == picture).all()


def main(folder: Path) -> None:
    """Make the kept pictures anew, and whole screenshots of them in ``folder``, to be looked at."""
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, chromium() as browser, filmed(Path(place)) as films:
        for name, picture in looks(films, browser):
            time.sleep(0.3)
            png = picture()
            write_grey(KEPT / f"{name}.png", shrunk(png))
            (folder / f"{name}.png").write_bytes(png)
        MADE_WITH.write_text(f"{made_with(browser)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/looks"))
