"""The view that report and studio share, as modules: mounting, updating, correcting."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from browser import chromium_page
from graph2vid.report import STATIC, view_model
from groundings import spaghetti

FOUND, _ = spaghetti()
MODEL = view_model(FOUND)
POLICY = "default-src 'self'; media-src 'self' blob:; img-src data:"
PAGE = """<!doctype html><html lang="en"><title>view</title><link rel="stylesheet" href="/view/view.css">
<link rel="icon" href="data:,"><main id="here"></main><script type="module" src="/start.js"></script></html>"""
START = """import { mountResult } from "/view/view.js";
window.told = [];
const here = document.getElementById("here");
for (const name of ["segment-drag", "segment-select", "step-select"]) {
  here.addEventListener(name, (event) => told.push([name, event.detail]));
}
window.start = (model, options) => { window.view = mountResult(here, model, options); };"""


def serve(route: Any) -> None:
    path = route.request.url.removeprefix("http://view.test")
    made = {"/": ("text/html", PAGE), "/start.js": ("text/javascript", START)}
    if path in made:
        kind, body = made[path]
    else:
        file = STATIC / path.removeprefix("/view/")
        kind, body = mimetypes.guess_type(file.name)[0] or "", file.read_text("utf-8")
    route.fulfill(body=body, content_type=kind, headers={"Content-Security-Policy": POLICY})


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """Yield a page that has loaded the view's modules one by one, under a strict policy."""
    with chromium_page() as page:
        page.route("http://view.test/**", serve)
        page.goto("http://view.test/")
        yield page
        assert page.errors == []


def start(page: Any, **options: Any) -> None:
    page.evaluate("window.view?.destroy(); told.length = 0")
    page.evaluate("([model, options]) => start(model, options)", [MODEL, options])


def told(page: Any, name: str) -> list[Any]:
    return [detail for event, detail in page.evaluate("told") if event == name]


def drag(page: Any, index: int, edge: str, seconds: float) -> None:
    """Drag a border of a segment, without letting go."""
    grip = page.locator(f'.lanes [data-index="{index}"] .grip.{edge}')
    grip.scroll_into_view_if_needed()
    box, track = grip.bounding_box(), page.locator(".lanes .track").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + seconds / FOUND.duration * track["width"], y + 30, steps=5)


def test_parts_are_chosen(page: Any) -> None:
    start(page, theme=False, parts=["lanes"])
    assert page.locator("h1, video, .node, .cue, table, canvas.evidence").count() == 0
    assert page.locator(".lanes .segment").count() == len(FOUND.segments)
    page.evaluate("view.destroy()")
    assert page.locator("#here").inner_html() == ""


def test_choosing_is_told(page: Any) -> None:
    start(page)
    page.locator('.lanes [data-index="2"]').click()
    (chosen,) = told(page, "segment-select")
    assert chosen["index"] == 2 and chosen["segment"]["start"] == FOUND.segments[2].start
    assert told(page, "step-select") == [{"step": FOUND.segments[2].step}]
    assert page.evaluate("view.time") == FOUND.segments[2].start


def test_borders_are_dragged_in_whole_clips(page: Any) -> None:
    start(page, editable=True)
    segment = FOUND.segments[4]
    drag(page, 4, "end", 2.3)
    assert [event["done"] for event in told(page, "segment-drag")][-1] is False
    page.mouse.up()
    last = told(page, "segment-drag")[-1]
    assert last == {"index": 4, "edge": "end", "start": segment.start, "end": segment.end + 2, "done": True}
    assert told(page, "segment-select") == []  # a drag is no click
    drag(page, 4, "start", 1000.0)
    page.mouse.up()
    last = told(page, "segment-drag")[-1]
    assert last["start"] == last["end"] - FOUND.clip_seconds  # one clip is left at least


def test_borders_are_moved_by_the_keyboard(page: Any) -> None:
    start(page, editable=True)
    segment = FOUND.segments[4]
    page.locator('.lanes [data-index="4"]').focus()
    for key in ("Shift+ArrowLeft", "Alt+ArrowRight", "Alt+ArrowRight"):
        page.keyboard.press(key)
    last = told(page, "segment-drag")[-1]
    assert (last["start"], last["end"], last["done"]) == (segment.start - 1, segment.end + 2, True)


def test_another_result_takes_its_place(page: Any) -> None:
    start(page, editable=True)
    page.locator('.lanes [data-index="3"]').click()
    time = page.evaluate("view.time")
    segments = list(FOUND.segments)
    segments[3] = replace(segments[3], end=segments[3].end - 1)
    corrected = view_model(replace(FOUND, segments=tuple(segments)))
    page.evaluate("model => view.update(model)", json.loads(json.dumps(corrected)))
    assert page.evaluate("view.time") == time
    assert page.evaluate("document.activeElement.dataset.index") == "3"
    assert page.locator('.lanes [data-index="3"].on').count() == 1
    assert page.locator(".playhead").count() == 1
