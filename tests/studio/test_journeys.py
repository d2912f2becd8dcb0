"""Journeys through the studio in a real browser: from text to export by keys, a long video, a phone, two windows,
kills, contradictions, and edges that fight the evidence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser import axe_findings, wait_until
from films import long_film
from graph2vid.sample import NarratedFiles
from studios import Server, serving, studio_page, wait_for

SAMPLE = NarratedFiles()
STEPS, MINUTES = 70, 82
THINGS = ["tomato", "shelf", "panel", "dough", "hinge", "drawer", "frame", "tile", "rope", "lamp"]
VERBS = ["Cut", "Sand", "Glue", "Drill", "Paint", "Fold", "Rinse"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A studio with a folder of videos: one of 82 minutes, and its captions."""
    folder = tmp_path_factory.mktemp("journeys")
    (folder / "videos").mkdir()
    long_film(folder / "videos" / "long.mp4", 60 * MINUTES)
    (folder / "videos" / "long.vtt").write_text(long_captions(), encoding="utf-8")
    (folder / "videos" / "half.vtt").write_text(long_captions(35, 35), encoding="utf-8")
    with serving(folder / "projects", "--videos", str(folder / "videos")) as server:
        yield server


def long_step(number: int) -> str:
    return f"{VERBS[number % 7]} the {THINGS[number // 7]} number {number + 1}."


def long_captions(steps: int = STEPS, seconds: int = 70) -> str:
    """Name one step after the other, each for some seconds."""
    lines = ["WEBVTT", ""]
    for at in range(0, steps * seconds, 5):
        words = long_step(at // seconds) if at % seconds < 0.65 * seconds else "so well you know"
        begin, end = (f"{t // 3600:02d}:{t // 60 % 60:02d}:{t % 60:02d}.000" for t in (at, at + 4))
        lines += [f"{begin} --> {end}", words, ""]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def long(server: Server) -> str:
    """A project of 70 steps in 82 minutes, grounded; its name."""
    name = str(server.ask("POST", "projects", json={"title": "A whole workshop"})["name"])
    flow = [f"s{number}: {long_step(number)}" for number in range(STEPS)]
    flow += [f"s{number} -> s{number + 1}" for number in range(STEPS - 1)]
    server.ask("PUT", f"projects/{name}/flow", params={"name": "l.flow"}, content="\n".join(flow).encode())
    media = {kind: {"place": "folder", "name": f"long.{end}"} for kind, end in (("video", "mp4"), ("captions", "vtt"))}
    server.ask("PATCH", f"projects/{name}", json=media)
    assert server.wait(server.ask("POST", f"projects/{name}/ground"), 120)["state"] == "done"
    return name


def sample(server: Server, ground: bool = True) -> str:
    """Make a project of the sample; return its name."""
    name = str(server.ask("POST", "projects/sample")["name"])
    server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
    if ground:
        assert server.wait(server.ask("POST", f"projects/{name}/ground"))["state"] == "done"
    return name


def open_result(page: Any, name: str) -> None:
    page.goto(f"/#/{name}/result")
    page.locator(".lanes .segment").first.wait_for()
    wait_until(page, "document.querySelector('video').readyState >= 1")


BOX = "one => (one.scrollIntoView({ block: 'nearest' }), one.getBoundingClientRect().toJSON())"


def picked(page: Any) -> int | None:
    found = page.evaluate("document.querySelector('.segment.picked')?.dataset.index ?? null")
    return None if found is None else int(found)


def test_text_to_export_with_the_keyboard_in_the_review(server: Server, browser: Any, tmp_path: Path) -> None:
    with studio_page(server, browser, width=1280, height=720) as page:
        page.get_by_role("button", name="New project").first.click()
        page.locator("#procedure").fill(SAMPLE.text.read_text(encoding="utf-8"))
        page.get_by_role("radio", name="As listed").check()
        page.get_by_role("button", name="Find the order").click()
        page.locator(".node").first.wait_for(timeout=60_000)
        page.get_by_role("button", name="Choose a video").click()
        page.get_by_role("radio", name="spaghetti.mp4").check()
        page.get_by_role("radio", name="spaghetti.vtt").check()
        page.locator(".checks", has_text="spaghetti.vtt").wait_for()
        page.get_by_role("button", name="Ground the video").click()
        page.locator(".lanes .segment").first.wait_for(timeout=60_000)
        name = page.url.split("#/")[1].split("/")[0]

        # All of it on one screen.
        for part in ("video", ".lanes .segment >> nth=0", ".flow .node >> nth=0", "canvas.axis", "canvas.overview"):
            box = page.locator(part).bounding_box()
            assert box["y"] >= 0 and box["y"] + min(box["height"], 20) <= 720, part
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")

        # The order as listed is not that of the video: steps are missing, and one click puts one where it may be.
        for undone in (True, False):
            page.get_by_role("tab", name="Review").click()
            page.locator(".button.put").first.click()
            page.locator(".correction", has_text="exactly").first.wait_for(state="attached")
            (made,) = server.ask("GET", f"projects/{name}/corrections")
            assert made["kind"] == "exact" and made["end"] > made["start"]
            page.wait_for_load_state("networkidle")
            if undone:
                page.keyboard.press("Control+z")
                page.locator(".correction", has_text="exactly").first.wait_for(state="detached")
        page.keyboard.press("Control+Enter")
        page.locator(".stale").wait_for(state="detached", timeout=60_000)
        page.locator("summary", has_text="Export").click()
        with page.expect_download() as download:
            page.locator("[data-key=export-vtt]").click()
        assert download.value.suggested_filename == f"{name}.chapters.vtt"
        assert page.errors == []


def test_borders_follow_the_playhead_and_new_spans_are_drawn(server: Server, browser: Any) -> None:
    name = sample(server)
    with studio_page(server, browser, width=1280, height=720) as page:
        open_result(page, name)
        page.locator('.lanes [data-index="3"]').click()
        start, end = page.evaluate("(one => [one.segment.start, one.segment.end])(document.querySelector('.picked'))")
        for _ in range(2):
            page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("i")
        page.locator(".correction", has_text="exactly").wait_for()
        (made,) = server.ask("GET", f"projects/{name}/corrections")
        assert (made["start"], made["end"]) == (start + 2, end)
        assert page.locator(".stale").inner_text() == "Outdated: your corrections are not in it yet"

        # Dragging the whole segment, given up with Escape.
        box = page.locator(".segment.picked").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 8)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 90, box["y"] + 8, steps=4)
        page.keyboard.press("Escape")
        page.mouse.up()
        assert page.locator(".segment.picked").bounding_box()["x"] == pytest.approx(box["x"], abs=1)

        # A new span, drawn in the lane of a step, takes the place of the old one; undo brings that back.
        lane = page.locator(".lane").nth(2)
        track = lane.locator(".track").bounding_box()
        page.mouse.move(track["x"] + 0.95 * track["width"], track["y"] + 12)
        page.mouse.down()
        page.mouse.move(track["x"] + 0.99 * track["width"], track["y"] + 12, steps=4)
        page.mouse.up()
        page.locator(".toast.bad, .correction >> nth=1").first.wait_for()
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")


def test_every_segment_of_a_long_video_is_chosen_and_dragged(server: Server, long: str, browser: Any) -> None:
    with studio_page(server, browser, width=1280, height=720) as page:
        open_result(page, long)
        count = page.locator(".lanes .segment").count()
        assert count == STEPS
        assert page.locator(".flow .node").count() == STEPS
        page.get_by_role("button", name="Fit the whole graph").click()
        graph, box = page.locator(".flow svg.graph").bounding_box(), page.locator(".graph-scroll").bounding_box()
        assert graph["height"] <= box["height"] + 8
        for index in range(count):
            at = page.evaluate(f"({BOX})(document.querySelector('.lanes [data-index=\"{index}\"]'))")
            page.mouse.click(at["x"] + at["width"] / 2, at["y"] + 8)
            assert picked(page) == index, index
            grip = page.evaluate(f"({BOX})(document.querySelector('.grip.end'))")
            assert grip["width"] >= 24
            page.mouse.move(grip["x"] + 12, grip["y"] + 8)
            page.mouse.down()
            page.mouse.move(grip["x"] + 40, grip["y"] + 8, steps=2)
            # The border and the video went along: 28 pixels are two and a half minutes, or what is left of the video.
            dragged = page.evaluate("document.querySelector('.segment.picked').getBoundingClientRect().width")
            assert dragged > at["width"] + 5, index
            seconds = min(70 * index + 80, 70 * STEPS - 10)
            clock = page.locator(".clock").inner_text()
            if index % 10 == 5:  # seeking takes the browser a while
                wait_until(page, "!document.querySelector('video').seeking")
                assert page.evaluate("document.querySelector('video').currentTime") > seconds
            page.keyboard.press("Escape")
            page.mouse.up()
            parts = [float(part) for part in reversed(clock.split(":"))]
            assert sum(part * 60**place for place, part in enumerate(parts)) > seconds, (index, clock)
        assert server.ask("GET", f"projects/{long}/corrections") == []
        assert page.errors == []


def test_the_graph_is_folded_and_fitted_and_the_transcript_follows(server: Server, long: str, browser: Any) -> None:
    with studio_page(server, browser, width=1280, height=720) as page:
        open_result(page, long)
        page.get_by_role("button", name="Fit the whole graph").click()
        sizes = "['.graph-scroll', 'svg.graph'].map(at => document.querySelector(at).getBoundingClientRect().height)"
        box, drawn = page.evaluate(sizes)
        assert drawn <= box and page.locator(".flow .node").count() == STEPS  # all of it is seen
        page.get_by_role("button", name="Hide the graph").click()
        wide = page.locator(".side").bounding_box()["width"]
        page.reload()  # it stays as it was left
        page.locator(".lanes .segment").first.wait_for()
        assert page.locator(".flow").is_hidden() and page.locator(".side").bounding_box()["width"] == wide
        page.get_by_role("button", name="Show the graph").click()
        assert page.locator(".flow").is_visible() and page.locator(".side").bounding_box()["width"] < wide

        # In the editor a step is found by its words, and comes into sight.
        page.get_by_role("link", name="Flow graph").click()
        page.get_by_label("Find a step").fill("number 44.")
        at = page.locator(".node.found").bounding_box()
        canvas = page.locator(".canvas").bounding_box()
        assert canvas["y"] <= at["y"] and at["y"] + at["height"] <= canvas["y"] + canvas["height"]
        page.get_by_label("Find a step").press("Enter")
        page.get_by_role("heading", name="Step 44").wait_for()
        page.get_by_role("link", name="Result").click()
        page.locator(".lanes .segment").first.wait_for()

        # The border between the video and what is known is dragged, and by keys.
        border = page.get_by_role("separator", name="Width of the video")
        at, before = border.bounding_box(), page.locator("video").bounding_box()["width"]
        page.mouse.move(at["x"] + 4, at["y"] + 60)
        page.mouse.down()
        page.mouse.move(at["x"] + 64, at["y"] + 60, steps=3)
        page.mouse.up()
        assert page.locator("video").bounding_box()["width"] == pytest.approx(before + 60, abs=6)
        border.press("ArrowLeft")
        assert page.locator("video").bounding_box()["width"] < before + 50

        # The words that are said now are in sight, also if they are looked at only later, and after a click.
        def in_sight(number: int) -> str:
            within = "(box, at) => at.top >= box.top - 1 && at.bottom <= box.bottom + 1"
            boxes = "...['.cues', '.cue.now'].map(one => document.querySelector(one).getBoundingClientRect())"
            return f"document.querySelector('.cue.now')?.textContent.includes('{number}.') && ({within})({boxes})"

        page.evaluate("document.querySelector('video').currentTime = 43 * 70 + 2")
        page.get_by_role("tab", name="Transcript").click()
        wait_until(page, in_sight(44))
        page.locator(".cue.now").click()
        page.evaluate("document.querySelector('video').currentTime = 62 * 70 + 2")
        wait_until(page, in_sight(63))
        assert page.errors == []


def test_annotations_are_imported_and_other_windows_see_them(server: Server, browser: Any) -> None:
    name = sample(server)
    table = b"step,start,end\nchop,20,30\n"
    with studio_page(server, browser) as page, studio_page(server, browser) as other:
        for one in (page, other):
            open_result(one, name)
        file = {"name": "mine.csv", "mimeType": "text/csv", "buffer": table}
        page.locator(".known-head input[type=file]").set_input_files(file)
        page.locator(".toast", has_text="1 annotation read.").wait_for()
        other.evaluate("window.dispatchEvent(new Event('focus'))")
        for one in (page, other):  # it is shown at once
            one.locator(".correction", has_text="exactly 0:20.0").wait_for()
            one.locator('.segment.kept[aria-label*="from 0:20.0 to 0:30.0"]').wait_for()
        page.keyboard.press("Control+z")
        page.locator(".correction").wait_for(state="detached")
        assert page.locator(".segment.kept").count() == 0 and page.errors == []


def test_a_click_beside_a_short_segment_is_meant_for_it(server: Server, long: str, browser: Any) -> None:
    with studio_page(server, browser, width=1280, height=720) as page:
        open_result(page, long)
        at = page.locator('.lanes [data-index="3"]').bounding_box()
        page.mouse.click(at["x"] + at["width"] + 8, at["y"] + 8)
        assert picked(page) == 3
        page.keyboard.press("Escape")
        assert picked(page) is None
        page.keyboard.press("ArrowDown")
        assert picked(page) is not None


def test_on_a_phone_with_a_finger(server: Server, browser: Any) -> None:
    name = sample(server)
    phone = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
    with studio_page(server, browser, **phone) as page:
        open_result(page, name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for index in (1, 4, 8):
            segment = page.locator(f'.lanes [data-index="{index}"]')
            segment.evaluate("one => one.scrollIntoView({ block: 'center' })")
            page.wait_for_timeout(60)
            at = segment.bounding_box()
            page.touchscreen.tap(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
            assert picked(page) == index
            assert page.locator(".grip.start").bounding_box()["width"] >= 24
            # It stays in sight between the video and what can be said of it.
            lane = page.locator(".segment.picked").bounding_box()
            assert lane["y"] >= sum(page.locator(".player").bounding_box()[key] for key in ("y", "height"))
            assert lane["y"] + lane["height"] <= page.locator(".correct-chosen").bounding_box()["y"]
        page.locator("[data-key=keep]").tap()
        page.locator(".toast", has_text="is held to").wait_for()

        # Two fingers zoom.
        page.locator("[data-key=nothing]").tap()
        page.locator(".axis").evaluate("one => one.scrollIntoView({ block: 'end' })")
        at = page.locator(".axis").bounding_box()
        touched = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 30), ("touchMove", 60), ("touchMove", 90), ("touchEnd", None)):
            fingers = (
                [] if apart is None else [{"x": at["x"] + 150 + side * apart, "y": at["y"] + 8} for side in (-1, 1)]
            )
            touched.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        wait_until(page, "Number.parseFloat(document.querySelector('.zoom-value').textContent) >= 2")
        assert axe_findings(page) == []


def test_two_windows_see_each_other(server: Server, browser: Any) -> None:
    name = sample(server)
    with studio_page(server, browser) as one, studio_page(server, browser) as other:
        open_result(one, name)
        open_result(other, name)
        one.locator('.lanes [data-index="2"]').click()
        one.keyboard.press("y")
        one.locator(".correction").wait_for()
        other.evaluate("window.dispatchEvent(new Event('focus'))")
        other.locator(".correction").wait_for()
        other.keyboard.press("Control+z")
        other.locator(".correction").wait_for(state="detached")
        assert server.ask("GET", f"projects/{name}/corrections") == []


@pytest.mark.parametrize("state", ["idle", "corrected", "grounding"])
def test_a_page_goes_on_after_the_studio_was_killed(tmp_path: Path, browser: Any, state: str) -> None:
    folder = tmp_path / "projects"
    with serving(folder) as server, studio_page(server, browser) as page:
        name = sample(server)
        open_result(page, name)
        if state != "idle":
            page.locator('.lanes [data-index="2"]').click()
            page.keyboard.press("y")
            page.locator(".correction").wait_for()
        if state == "grounding":
            wait_for(lambda: server.ask("POST", f"projects/{name}/film")["job"] or {"state": "done"})
            page.keyboard.press("Control+Enter")
            page.locator(".job-bar").wait_for()
        with server.held() if state == "grounding" else contextlib.nullcontext():
            server.kill()
        with serving(folder, "--port", str(httpx.URL(server.address).port)):
            if state == "grounding":
                page.locator(".toast", has_text="was ended while this ran").wait_for()
            page.locator('.lanes [data-index="4"]').click()
            page.keyboard.press("y")
            page.locator(".correction").nth(0 if state == "idle" else 1).wait_for()
            page.keyboard.press("Control+z")
            wait_until(page, f"document.querySelectorAll('.correction').length === {0 if state == 'idle' else 1}")


def test_contradictions_are_refused_in_words_and_the_message_goes(server: Server, browser: Any) -> None:
    name = sample(server)
    with studio_page(server, browser, width=1280, height=720) as page:
        open_result(page, name)
        page.locator('.lanes [data-index="4"]').click()
        page.keyboard.press("y")
        page.locator(".correction").wait_for()
        # The one after it is dragged over it.
        page.locator('.lanes [data-index="5"]').click()
        page.get_by_label("The step that it shows").wait_for()
        grip = page.locator(".grip.start").bounding_box()
        target = page.locator('.lanes [data-index="4"]').bounding_box()
        page.mouse.move(grip["x"] + 12, grip["y"] + 8)
        page.mouse.down()
        page.mouse.move(target["x"] + target["width"] / 2, grip["y"] + 8, steps=4)
        page.mouse.up()
        refusal = page.locator(".toast.bad")
        refusal.wait_for()
        assert "you said that step" in refusal.inner_text() and "exactly" in refusal.inner_text()
        assert "--" not in refusal.inner_text()
        assert len(server.ask("GET", f"projects/{name}/corrections")) == 1
        page.keyboard.press("ArrowDown")  # something else: the message goes
        refusal.wait_for(state="detached")


def test_an_edge_that_fights_the_evidence_is_relaxed_with_one_click(server: Server, browser: Any) -> None:
    """The graph wrongly says that steps 11 to 20 come before the first."""
    name = str(server.ask("POST", "projects", json={"title": "Wrong order"})["name"])
    flow = [f"s{number}: {long_step(number)}" for number in range(35)]
    flow += [f"s{number} -> s{number + 1}" for number in range(34) if number != 9]
    flow += ["s9 -> s20", "s19 -> s0"]
    server.ask("PUT", f"projects/{name}/flow", params={"name": "w.flow"}, content="\n".join(flow).encode())
    server.ask("PATCH", f"projects/{name}", json={"captions": {"place": "folder", "name": "half.vtt"}})
    assert server.wait(server.ask("POST", f"projects/{name}/ground"), 120)["state"] == "done"
    conflicts = server.ask("GET", f"projects/{name}")["result"]["conflicts"]
    assert conflicts and conflicts[0]["gain"] > 0
    with studio_page(server, browser, width=1280, height=720) as page:
        page.goto(f"/#/{name}/result")
        page.get_by_role("tab", name="Review").click()
        assert "fights what the video shows" in page.locator(".conflict").first.inner_text()
        assert page.locator(".flow .edge.fights").count() == len(conflicts)
        assert axe_findings(page) == []
        page.locator('.lanes [data-index="3"]').click()
        page.get_by_role("tab", name="Review").click()
        links = len(server.ask("GET", f"projects/{name}/flow")["edges"])
        page.locator(".relax").first.click()
        page.locator(".toast", has_text="grounded").wait_for(timeout=60_000)
        assert len(server.ask("GET", f"projects/{name}/flow")["edges"]) == links - 1
        now = server.ask("GET", f"projects/{name}")["result"]
        assert now["current"] and conflicts[0] not in now["conflicts"]
        page.keyboard.press("Control+z")  # the link comes back
        page.locator(".stale", has_text="the graph has changed").wait_for()
        assert page.errors == []


# Whatever is changed reaches the server late.
SLOW = """(ask => { window.fetch = async (...given) => {
    if (given[1]?.method === "POST") await new Promise(go => setTimeout(go, 250));
    return ask(...given);
} })(window.fetch)"""


def test_undo_at_once_on_another_page_and_another_video(server: Server, browser: Any) -> None:
    """Who goes on before the server has answered, and undoes there, undoes what was done last."""
    name = sample(server)
    server.ask("POST", f"projects/{name}/videos", json={"captions": {"place": "sample", "name": "spaghetti.vtt"}})
    assert server.wait(server.ask("POST", f"projects/{name}/ground-all"))["state"] == "done"
    videos = [one["id"] for one in server.ask("GET", f"projects/{name}/videos")["videos"]]

    def known(video: str = "") -> list[Any]:
        return list(server.ask("GET", f"projects/{name}/corrections", params={"video": video}))

    with studio_page(server, browser, width=1280, height=720) as page:
        page.evaluate(SLOW)
        open_result(page, name)
        # A correction, undone in the graph.
        page.locator('.lanes [data-index="4"]').click()
        page.keyboard.press("y")
        page.get_by_role("link", name="Flow graph").click()
        page.locator(".node").first.wait_for()
        page.keyboard.press("Control+z")
        page.locator(".toast", has_text="Undone: the correction").wait_for()
        assert known() == []
        # A link that is removed there, undone in the result.
        links = len(server.ask("GET", f"projects/{name}/flow")["edges"])
        page.locator(".node").nth(4).click()
        page.locator("[data-key^=cut-]").first.click()
        page.get_by_role("link", name="Result").click()
        page.locator(".lanes .segment").first.wait_for()
        page.keyboard.press("Control+z")
        page.locator(".toast", has_text="Undone: ").filter(has_not_text="correction").wait_for()
        assert len(server.ask("GET", f"projects/{name}/flow")["edges"]) == links
        # Two corrections of the first video, undone while the second is opened, and there.
        for index in (2, 4):
            page.locator(f'.lanes [data-index="{index}"]').click()
            page.keyboard.press("y")
        page.keyboard.press("Shift+N")
        page.keyboard.press("Control+z")
        wait_until(page, f"document.querySelector('[data-key=which-video]')?.value === '{videos[1]}'")
        assert len(known()) == 1 and known(videos[1]) == []
        page.keyboard.press("Control+z")
        page.locator(".toast", has_text="in spaghetti.mp4").wait_for()
        assert known() == [] and known(videos[1]) == []
        assert page.locator(".correction").count() == 0 and page.locator(".toast.bad").count() == 0
        assert page.errors == []
