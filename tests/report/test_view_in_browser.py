"""The view that report and studio share, as modules: mounting, updating, correcting."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from browser import chromium_page, wait_until
from graph2vid.report import STATIC, view_model
from groundings import one_hour, spaghetti

FOUND, _ = spaghetti()
MODEL = view_model(FOUND)
POLICY = "default-src 'self'; media-src 'self' blob:; img-src data:"
PAGE = """<!doctype html><html lang="en"><title>view</title><link rel="stylesheet" href="/view/view.css">
<link rel="icon" href="data:,"><main id="here"></main><script type="module" src="/start.js"></script></html>"""
START = """import { mountResult } from "/view/view.js";
window.told = [];
const here = document.getElementById("here");
for (const name of ["segment-drag", "segment-select", "step-select", "span-draw"]) {
  here.addEventListener(name, (event) => told.push([name, event.detail]));
}
window.start = (model, options) => { window.view = mountResult(here, model, options); };"""


def serve(route: Any) -> None:
    path = route.request.url.removeprefix("http://view.test")
    made = {"/": ("text/html", PAGE), "/start.js": ("text/javascript", START)}
    if path == "/video.mp4":
        route.fulfill(path=FOUND.video)
        return
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
    """Choose a segment and drag a border of it, or all of it, without letting go; Alt: nothing snaps."""
    segment = page.locator(f'.lanes [data-index="{index}"]')
    segment.click()
    grip = segment if edge == "move" else page.locator(f".grip.{edge}")
    box, track = grip.bounding_box(), page.locator(".lanes .track").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    border = segment.bounding_box()
    if edge != "move":  # as far as the border itself is
        seconds += (
            (x - (border["x"] + (border["width"] if edge == "end" else 0))) * FOUND.duration / track["width"] * -1
        )
    page.mouse.move(x, y)
    page.mouse.down()
    page.keyboard.down("Alt")
    page.mouse.move(x + seconds / FOUND.duration * track["width"], y + 30, steps=5)
    page.keyboard.up("Alt")


BOXED = [
    [0.0, 6.0, "Boil water", "caption", [0.25, 0.8, 0.5, 0.1]],
    [2.0, 9.0, "@name", "watermark", [0.9, 0, 0.1, 0.1]],
]
BOXES = """() => {
  const video = document.querySelector("video");
  const [wide, high, around] = [video.videoWidth, video.videoHeight, video.getBoundingClientRect()];
  const scale = Math.min(around.width / wide, around.height / high);
  const left = around.x + (around.width - scale * wide) / 2, top = around.y + (around.height - scale * high) / 2;
  return [...document.querySelectorAll(".read-box")].map((one) => {
    const box = one.getBoundingClientRect();
    const [across, down] = [box.width / scale / wide, box.height / scale / high];
    return [(box.x - left) / scale / wide, (box.y - top) / scale / high, across, down];
  });
}"""


@pytest.mark.parametrize("layout", ["page", "workspace"])
def test_text_in_the_picture_has_a_box_while_it_is_on_the_screen(page: Any, layout: str) -> None:
    url = page.evaluate("fetch('/video.mp4').then((got) => got.blob()).then((film) => URL.createObjectURL(film))")
    model = MODEL | {"video": {"url": url, "name": "video.mp4"}, "cues": [[0.0, 1.0, "Hello"], *BOXED]}
    page.evaluate("window.view?.destroy(); document.getElementById('here').style.height = '800px'")
    page.evaluate("([model, options]) => start(model, options)", [model, {"layout": layout}])
    wait_until(page, "document.querySelector('video').readyState >= 1")
    for _ in range(2):
        for seconds, shown in ((1.0, BOXED[:1]), (3.0, BOXED), (8.0, BOXED[1:]), (12.0, [])):
            page.evaluate("seconds => view.seek(seconds)", seconds)
            wait_until(page, f"Math.abs(document.querySelector('video').currentTime - {seconds}) < 0.1")
            assert np.ravel(page.evaluate(BOXES)) == pytest.approx(np.ravel([box for *_, box in shown]), abs=0.01)
        page.evaluate("model => view.update(model)", model)  # the video stays, the rest is made anew
        page.set_viewport_size({"width": 900, "height": 700})
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("document.getElementById('here').style.height = ''")
    assert page.locator(".cue-text").all_text_contents() == ["Hello", "on screen: Boil water", "watermark: @name"]


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
    assert len(told(page, "segment-select")) == 1  # a drag is no click
    assert page.evaluate("view.time") == pytest.approx(segment.end + 2, abs=0.1)  # the video shows the border
    start(page, editable=True)
    drag(page, 4, "start", 1000.0)
    page.mouse.up()
    last = told(page, "segment-drag")[-1]
    assert last["start"] == last["end"] - FOUND.clip_seconds  # one clip is left at least


def test_a_segment_is_moved_and_a_drag_is_given_up(page: Any) -> None:
    start(page, editable=True)
    segment = FOUND.segments[4]
    drag(page, 4, "move", 3.0)
    page.mouse.up()
    last = told(page, "segment-drag")[-1]
    assert (last["edge"], last["start"], last["end"]) == ("move", segment.start + 3, segment.end + 3)
    start(page, editable=True)
    drag(page, 4, "end", 5.0)
    page.keyboard.press("Escape")
    page.wait_for_timeout(50)  # let go some time later: that is no click beside it
    page.mouse.up()
    assert not any(event["done"] for event in told(page, "segment-drag"))
    assert page.evaluate("view.time") == segment.start  # where it was
    box = page.locator('.lanes [data-index="4"]').bounding_box()
    track = page.locator(".lanes .track").first.bounding_box()
    assert box["width"] == pytest.approx((segment.end - segment.start) / FOUND.duration * track["width"], abs=1)


def test_a_span_is_drawn_in_the_lane_of_a_step(page: Any) -> None:
    start(page, editable=True)
    step = FOUND.segments[-1].step
    track = page.locator(f'.lane[data-step="{step}"] .track').bounding_box()
    x, y = track["x"] + 0.1 * track["width"], track["y"] + 10
    page.mouse.move(x, y)
    page.mouse.down()
    page.keyboard.down("Alt")
    page.mouse.move(x + 0.1 * track["width"], y, steps=5)
    page.mouse.up()
    page.keyboard.up("Alt")
    (drawn,) = told(page, "span-draw")
    assert drawn["step"] == step
    assert drawn["start"] == pytest.approx(0.1 * FOUND.duration, abs=1) and drawn["end"] > drawn["start"]
    assert told(page, "segment-select") == []


def test_borders_snap_to_captions_and_neighbours(page: Any) -> None:
    start(page, editable=True, parts=["lanes"])
    page.locator('.lanes [data-index="4"]').click()
    neighbour = FOUND.segments[6]
    grip, track = page.locator(".grip.end").bounding_box(), page.locator(".lanes .track").first.bounding_box()
    page.mouse.move(grip["x"] + 12, grip["y"] + 8)
    page.mouse.down()
    page.mouse.move(track["x"] + neighbour.start / FOUND.duration * track["width"] + 4, grip["y"], steps=5)
    assert "at the" in page.locator(".tip").inner_text() and page.locator(".snap-guide").is_visible()
    page.mouse.up()
    assert told(page, "segment-drag")[-1]["end"] == pytest.approx(neighbour.start, abs=1)


def test_grips_are_large_and_only_on_what_is_chosen(page: Any) -> None:
    start(page, editable=True)
    assert page.locator(".grip").count() == 0
    page.evaluate("view.state.zoomBy(0)")
    page.locator('.lanes [data-index="2"]').click()
    assert page.locator(".grip").count() == 2
    for edge in ("start", "end"):
        assert page.locator(f".grip.{edge}").bounding_box()["width"] >= 24


def test_borders_are_moved_by_the_keyboard(page: Any) -> None:
    start(page, editable=True)
    segment = FOUND.segments[4]
    page.locator('.lanes [data-index="4"]').click()
    page.evaluate("view.state.nudge('end', { by: 1 })")
    last = told(page, "segment-drag")[-1]
    assert (last["start"], last["end"], last["done"]) == (segment.start, segment.end + 1, True)
    page.evaluate(f"view.state.nudge('start', {{ to: {segment.end + 4} }})")  # beyond its end: it goes along
    last = told(page, "segment-drag")[-1]
    assert (last["start"], last["end"]) == (segment.end + 4, segment.end + 4 + segment.end - segment.start)


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


def test_spans_and_snapping(page: Any) -> None:
    """The arithmetic behind dragging, without the hand."""
    script = """async ([name, ...given]) => (await import("/view/time.js"))[name](...given)"""
    limits = {"first": 10, "last": 40, "clip": 2}
    span = {"start": 20, "end": 30}
    for edge, time, moved in (
        ("start", 25.2, (26, 30)),
        ("start", 99, (28, 30)),  # one clip is left
        ("start", -5, (10, 30)),
        ("end", 33.1, (20, 34)),
        ("end", 0, (20, 22)),
        ("end", 99, (20, 40)),
        ("move", 23, (24, 34)),
        ("move", 99, (30, 40)),
        ("move", 0, (10, 20)),
    ):
        found = page.evaluate(script, ["movedSpan", span, edge, time, limits])
        assert (found["start"], found["end"]) == moved, (edge, time)
    targets = [{"at": 5, "name": "caption"}, {"at": 6, "name": "segment"}]
    assert page.evaluate(script, ["nearest", targets, 5.6, 1]) == targets[1]
    assert page.evaluate(script, ["nearest", targets, 9, 1]) is None
    keys = {"Control+z": "Ctrl+z", "Alt+Shift+ArrowLeft": "Alt+Shift+ArrowLeft", "Shift+?": "?", "n": "n"}
    page.evaluate("""async () => { const { keyOf } = await import("/view/keys.js"); window.pressed = [];
        addEventListener("keydown", (event) => pressed.push(keyOf(event)), true); }""")
    for pressed, name in keys.items():
        page.keyboard.press(pressed)
        assert page.evaluate("pressed.at(-1)") == name
    page.keyboard.press("Escape")


FRAMES = """async ([selector, side, frames]) => {
  const box = document.querySelector(selector);
  const next = () => new Promise(requestAnimationFrame);
  const far = side === "y" ? box.scrollHeight - box.clientHeight : box.scrollWidth - box.clientWidth;
  let last = await next();
  const times = [];
  for (let frame = 1; frame <= frames; frame += 1) {
    box[side === "y" ? "scrollTop" : "scrollLeft"] = (far * frame) / frames;
    const now = await next();
    times.push(now - last);
    last = now;
  }
  return times.sort((a, b) => a - b)[frames >> 1];
}"""
DRAGGED = """async (frames) => {
  const next = () => new Promise(requestAnimationFrame);
  const grip = document.querySelector(".grip.end");
  const { x, y } = grip.getBoundingClientRect();
  const more = { bubbles: true, pointerId: 1, clientY: y + 8, buttons: 1 };
  const send = (type, clientX) => grip.dispatchEvent(new PointerEvent(type, { ...more, clientX }));
  HTMLElement.prototype.setPointerCapture = () => {};  // there is no such pointer
  send("pointerdown", x + 12);
  let last = await next();
  const times = [];
  for (let frame = 1; frame <= frames; frame += 1) {
    send("pointermove", x + 12 + frame);
    const now = await next();
    times.push(now - last);
    last = now;
  }
  send("pointercancel", x);
  return times.sort((a, b) => a - b)[frames >> 1];
}"""


def test_pictures_stand_side_by_side_and_the_loudest_counts(page: Any) -> None:
    """What is drawn under the axis, without drawing it."""
    script = """async ([name, ...given]) => (await import("/view/filmstrip.js"))[name](...given)"""
    sight = {"left": 0, "right": 100, "width": 500}  # 5 pixels a second
    found = page.evaluate(script, ["picturesFor", sight, {"duration": 90, "number": 9, "wide": 50}])
    assert [one["x"] for one in found] == [*range(0, 450, 50)]  # none beyond the end
    assert [one["part"] for one in found] == [*range(9)]
    near = {"left": 33, "right": 43, "width": 500}
    found = page.evaluate(script, ["picturesFor", near, {"duration": 90, "number": 9, "wide": 50}])
    assert found[0]["x"] <= 0 < found[1]["x"] and {one["part"] for one in found} == {3, 4}
    assert page.evaluate(script, ["picturesFor", sight, {"duration": 0, "number": 0, "wide": 50}]) == []
    peaks = [0, 10, 200, 5]
    assert page.evaluate(script, ["loudest", peaks, 4, 0, 1]) == 0
    assert page.evaluate(script, ["loudest", peaks, 4, 0.5, 2.1]) == 200
    assert page.evaluate(script, ["loudest", peaks, 4, 3.2, 9]) == 5


@pytest.mark.slow
def test_three_thousand_segments_scroll_and_are_dragged_smoothly(page: Any) -> None:
    """With software rendering: what the page computes for a frame, which other work of the machine does not change."""
    model = view_model(one_hour())
    known = model["segments"][0]
    model["segments"] = [known | {"step": at % 30, "start": 1.2 * at, "end": 1.2 * at + 1} for at in range(3000)]
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("window.view?.destroy(); document.getElementById('here').style.height = '660px'")
    page.evaluate("model => start(model, { layout: 'workspace', editable: true, theme: false })", model)
    assert page.locator(".lanes .segment").count() == 3000
    probe = page.context.new_cdp_session(page)
    probe.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work() -> float:
        found = {one["name"]: one["value"] for one in probe.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(found["TaskDuration"])

    took, median = {}, {}
    for name, before, script, given in (
        ("down", "0", FRAMES, [".time-scroll", "y", 40]),
        ("along", "view.state.zoomBy(8)", FRAMES, [".time-scroll", "x", 40]),
        ("dragged", "view.state.zoomBy(0); view.state.pick(1500)", DRAGGED, 40),
    ):
        page.evaluate(before)
        page.wait_for_timeout(200)
        began = work()
        median[name] = page.evaluate(script, given)
        took[name] = (work() - began) / 40  # milliseconds for a frame
    shown = {name: (round(took[name], 1), round(median[name], 1)) for name in took}
    print("work of a frame, median frame (ms):", shown)
    assert max(took.values()) <= 20 and max(median.values()) <= 20, (took, median)
    page.evaluate("view.destroy(); document.getElementById('here').style.removeProperty('height')")


def test_each_source_of_evidence_is_drawn_apart(page: Any) -> None:
    start(page)
    assert page.locator(".heat-source").count() == 0  # there is one source
    evidence = FOUND.evidence
    assert evidence is not None
    several = view_model(replace(FOUND, sources={"narration": evidence, "frames": -evidence}))
    page.evaluate("(model) => { view.destroy(); start(model, {}); }", several)
    page.wait_for_timeout(100)
    drawn = []
    for name in ("all together", "narration", "frames"):
        page.locator(".heat-source").select_option(name)
        page.wait_for_timeout(100)
        drawn.append(page.locator("canvas.evidence").evaluate("(canvas) => canvas.toDataURL()"))
    assert drawn[0] == drawn[1] != drawn[2]
    page.locator("canvas.evidence").hover()
    assert "frames" in page.locator(".tip").inner_text()
