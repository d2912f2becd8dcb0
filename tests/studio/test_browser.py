"""The studio in a real browser: the whole way, by mouse and by keyboard, in both themes and on a phone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from browser import axe_findings
from graph2vid.grounding import Grounding
from graph2vid.sample import NarratedFiles
from studios import Server, serving, studio_page

SAMPLE = NarratedFiles()
PAGES = ("procedure", "graph", "video", "result")
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A studio with a folder of videos, in which the sample lies under another name."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    folder = tmp_path_factory.mktemp("studio")
    (folder / "videos").mkdir()
    shutil.copy(SAMPLE.video, folder / "videos" / "dinner.mp4")
    shutil.copy(SAMPLE.captions, folder / "videos" / "dinner.vtt")
    with serving(folder / "projects", "--videos", str(folder / "videos")) as server:
        yield server


@pytest.fixture(scope="module")
def grounded(server: Server) -> str:
    """A project with everything in it; its name."""
    name = str(server.ask("POST", "projects/sample")["name"])
    server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
    job = server.wait(server.ask("POST", f"projects/{name}/ground"))
    assert job["state"] == "done", job
    return name


def said(page: Any, words: str) -> None:
    """Wait until the studio says something."""
    page.locator(".toast", has_text=words).first.wait_for()


def until(page: Any, expression: str) -> None:
    """Wait until an expression is true. Our policy forbids playwright to do so within the page."""
    for _ in range(300):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{expression} is not true")


def _is_change(response: Any) -> bool:
    return bool(response.request.method != "GET")


def count(page: Any) -> str:
    return str(page.locator(".orders").inner_text())


def wait_for_orders(page: Any, words: str) -> None:
    page.locator(".orders", has_text=words).wait_for()


def test_the_whole_way(server: Server, tmp_path: Path) -> None:
    with studio_page(server, width=1360, height=850) as page:
        page.goto("/")
        page.get_by_role("button", name="New project").first.click()

        # The procedure in words.
        page.locator("#procedure").fill(SAMPLE.text.read_text(encoding="utf-8"))
        page.get_by_role("radio", name="Rules reads").check()
        page.get_by_role("button", name="Find the order").click()
        page.locator(".node").first.wait_for(timeout=60_000)
        name = page.url.split("#/")[1].split("/")[0]
        assert page.locator(".title-field").input_value() == "Spaghetti with garlic bread"
        assert count(page) == "10 steps, 9 links: 840 possible orders"

        # The reason of a link, its removal, and undo.
        page.locator('.node[data-step="5"]').click()
        assert "Fry → the onion" in page.locator(".inspector").inner_text()
        page.get_by_role("button", name="Remove 4 → 5").click()
        wait_for_orders(page, "8 links")
        page.keyboard.press("Control+z")
        wait_for_orders(page, "9 links: 840 possible orders")
        page.keyboard.press("Control+Shift+z")
        wait_for_orders(page, "8 links")
        page.get_by_role("button", name="Undo").click()
        wait_for_orders(page, "9 links")

        # What is highlighted is what Delete deletes: a link, and no step.
        shaft = page.locator(".edge[data-before='4'][data-after='5'] .hit")
        shaft.dispatch_event("click")
        page.locator(".edge.on[data-before='4'][data-after='5']").wait_for()
        assert page.locator(".node.on").count() == 0
        page.keyboard.press("Delete")
        wait_for_orders(page, "10 steps, 8 links")
        page.keyboard.press("Control+z")
        wait_for_orders(page, "9 links")

        # A cycle is refused with the reason, and the message goes with the next thing that is done.
        page.locator('.node[data-step="10"]').click()
        page.get_by_label("Kind of link").select_option("before")
        page.get_by_label("Other step").select_option("1")
        page.locator("[data-key=add-link]").click()
        said(page, "10 → 1 is refused: the steps form a cycle: 1 → 2 → 9 → 10 → 1")
        assert len(page.errors) == 1  # the browser itself notes the refusal
        page.errors.clear()
        assert count(page) == "10 steps, 9 links: 840 possible orders"
        page.locator('.node[data-step="3"]').click()
        assert page.locator(".toast").count() == 0

        # A link drawn by hand, from the grip of one step to another.
        grip = page.locator('.node[data-step="1"] .link-grip').bounding_box()
        target = page.locator('.node[data-step="4"]').bounding_box()
        page.locator('.node[data-step="1"]').hover()
        page.mouse.move(grip["x"] + 7, grip["y"] + 7)
        page.mouse.down()
        page.mouse.move(target["x"] + 60, target["y"] + 30, steps=6)
        page.mouse.up()
        wait_for_orders(page, "10 links")
        assert "added by hand" in page.locator(".inspector").inner_text()
        page.locator(".inspector").get_by_role("button", name="Reverse").click()
        wait_for_orders(page, "10 links")
        page.locator(".edge[data-before='4'][data-after='1']").wait_for()
        for _ in range(2):
            page.get_by_role("button", name="Undo").click()
        wait_for_orders(page, "9 links")

        # Rename, optional, split, merge, add and remove.
        page.locator('.node[data-step="5"]').click()
        page.get_by_label("Text").fill("Add the tomatoes and simmer.")
        page.get_by_label("Text").press("Enter")
        page.locator('.node[data-step="5"] .words', has_text="simmer").wait_for()
        page.locator("input[data-key=optional]").check()
        page.locator('.node.optional[data-step="5"]').wait_for()
        page.locator("summary", has_text="Split").click()
        assert page.get_by_label("One part in each line").input_value() == "Add the tomatoes\nsimmer."
        page.get_by_role("button", name="Split", exact=True).click()
        wait_for_orders(page, "11 steps")
        page.locator("summary", has_text="Merge").click()
        page.get_by_label("Step to merge with").select_option("11")
        page.get_by_role("button", name="Merge", exact=True).click()
        wait_for_orders(page, "10 steps")
        page.get_by_role("button", name="Add a step").click()
        wait_for_orders(page, "11 steps")
        page.get_by_role("button", name="Remove this step").click()
        wait_for_orders(page, "10 steps")
        for _ in range(6):
            page.get_by_role("button", name="Undo").click()
            page.wait_for_timeout(60)
        wait_for_orders(page, "10 steps, 9 links: 840 possible orders")
        page.locator('.node[data-step="5"] .words', has_text="onion").wait_for()

        # The video and its captions, from the folder named at the start.
        page.get_by_role("button", name="Choose a video").click()
        page.get_by_role("radio", name="dinner.mp4").check()
        page.get_by_role("radio", name="dinner.vtt").check()
        page.locator(".checks", has_text="dinner.vtt").wait_for()
        page.get_by_role("button", name="Ground the video").click()
        page.locator(".job-bar").wait_for()
        page.locator(".segment").first.wait_for(timeout=60_000)

        # A click on a segment seeks the video.
        first = result_of(server, name)
        segment = first.segments[2]  # it ends some clips late
        button = page.locator(f'.lanes .segment[data-step="{segment.step}"]')
        button.click()
        until(page, f"Math.abs(document.querySelector('video').currentTime - {segment.start}) < 0.6")
        assert segment.text in page.locator(".correct-chosen").inner_text()

        # A border is dragged four clips to the left; the next grounding keeps to it exactly.
        track = page.locator(f'.lane[data-step="{segment.step}"] .track').bounding_box()
        second = track["width"] / first.duration
        box, grip = button.bounding_box(), page.locator(".grip.end").bounding_box()
        page.mouse.move(grip["x"] + 12, grip["y"] + 8)
        page.mouse.down()
        page.keyboard.down("Alt")  # nothing snaps
        page.mouse.move(box["x"] + box["width"] - 4 * second, box["y"] + 8, steps=5)
        until(page, f"Math.abs(document.querySelector('video').currentTime - {segment.end - 4}) < 0.6")
        assert "–" in page.locator(".tip").inner_text()
        page.mouse.up()
        page.keyboard.up("Alt")
        page.locator(".correction", has_text="exactly").wait_for()
        page.locator(".stale").wait_for()
        (correction,) = server.ask("GET", f"projects/{name}/corrections")
        assert (correction["kind"], correction["start"], correction["end"]) == ("exact", segment.start, segment.end - 4)

        # Another one is right.
        other = first.segments[7]
        page.locator(f'.lanes .segment[data-step="{other.step}"]').click()
        page.get_by_role("button", name="Right: keep it").click()
        page.locator(".correction").nth(1).wait_for()
        page.locator(".stale").wait_for()
        page.get_by_role("button", name="Ground again").click()
        page.locator(".stale").wait_for(state="detached", timeout=60_000)
        page.locator(".row[data-row]", has_text="before").wait_for()
        again = result_of(server, name)
        (held,) = again.segments_of(segment.step)
        assert (held.start, held.end) == (segment.start, segment.end - 4)
        (kept,) = again.segments_of(other.step)
        assert (kept.start, kept.end) == (other.start, other.end)

        # And if it were wrong.
        page.locator(f'.lanes .segment[data-step="{other.step}"]').click()
        page.get_by_role("button", name="Wrong: not this step").click()
        page.locator(".correction", has_text="not in").wait_for()
        page.locator(".stale").wait_for()
        page.get_by_role("button", name="Ground again").click()
        page.locator(".stale").wait_for(state="detached", timeout=60_000)
        again = result_of(server, name)
        assert all(part.end <= other.start or part.start >= other.end for part in again.segments_of(other.step))

        # Taken back, pinned as it is, given to another step.
        page.locator(".correction button[aria-label^='Take back']").last.click()
        until(page, "document.querySelectorAll('.correction').length === 1")
        page.locator(f'.lanes .segment[data-step="{segment.step}"]').click()
        page.get_by_role("button", name="Right: keep it").click()
        said(page, "is held to")

        # Given to another step: refused, for it was said to be this one; that is taken back in one click.
        page.get_by_label("The step that it shows").select_option(index=1)
        said(page, f"you said that step {segment.step + 1}")
        assert len(page.errors) == 1
        page.errors.clear()
        page.get_by_role("button", name="Take that back and do this").click()
        said(page, "is given to")

        # Export.
        page.locator("summary", has_text="Export").click()
        with page.expect_download() as download:
            page.locator("[data-key=export-json]").click()
        assert page.locator("[data-key=export-youtube]").inner_text().startswith("YouTube chapters")
        file = tmp_path / "export.json"
        download.value.save_as(file)
        assert Grounding.from_json(json.loads(file.read_text(encoding="utf-8"))).segments == again.segments
        with page.expect_download() as download:
            page.locator("[data-key=export-report]").click()
        assert download.value.suggested_filename == f"{name}.html"
        with page.expect_download() as download:
            page.locator("[data-key=export-report-video]").click()
        download.value.save_as(tmp_path / "report.html")
        assert 'id="video" data-kind="video/mp4"' in (tmp_path / "report.html").read_text(encoding="utf-8")
        with page.expect_download() as download:
            page.locator("[data-key=export-youtube]").click()
        assert download.value.suggested_filename == f"{name}.youtube.txt"
        said(page, "YouTube wants 10 s each")  # what had to be changed
        assert page.errors == []


def result_of(server: Server, name: str) -> Grounding:
    return Grounding.from_json(server.ask("GET", f"projects/{name}/result"))


def tab_to(page: Any, selector: str, most: int = 80) -> None:
    """Press Tab until something has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached by Tab")


def test_the_keyboard_alone(server: Server) -> None:
    with studio_page(server, width=1280, height=800) as page:
        page.goto("/")
        page.locator("h1").wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip-link"
        tab_to(page, ".button:has(span)")
        page.locator(".button", has_text="Try the sample").first.focus()
        page.keyboard.press("Enter")
        page.locator("#procedure").wait_for()
        tab_to(page, "[name=parser]")
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.value") == "linear"
        tab_to(page, ".button.primary")
        page.keyboard.press("Enter")
        page.locator(".node").first.wait_for(timeout=30_000)

        # In the graph: along the links, a link removed, another made, both undone.
        tab_to(page, ".node")
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        assert page.locator(".inspector h2").inner_text() == "Step 3"
        assert page.evaluate("document.activeElement.dataset.step") == "3"
        tab_to(page, "[aria-label='Remove 2 → 3']")
        page.keyboard.press("Enter")
        wait_for_orders(page, "8 links")
        page.locator('.node[data-step="1"]').focus()
        page.keyboard.press("l")
        said(page, "must wait for step 1")
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        wait_for_orders(page, "9 links")
        page.keyboard.press("Control+z")
        page.keyboard.press("Control+z")
        wait_for_orders(page, "9 links: 1 possible order")

        tab_to(page, "[data-key=next]", 140)
        page.keyboard.press("Enter")
        page.locator("[data-key=run]").wait_for()
        tab_to(page, "[data-key=run]")
        page.keyboard.press("Enter")
        page.locator(".segment").first.wait_for(timeout=60_000)
        tab_to(page, ".lanes .segment", 140)
        page.keyboard.press("Enter")
        page.locator("[data-key=keep]").wait_for()
        page.keyboard.press("Alt+ArrowRight")
        page.locator(".correction", has_text="exactly").wait_for()
        page.keyboard.press("Control+z")
        page.locator(".correction").wait_for(state="detached")
        page.keyboard.press("Control+Shift+z")
        page.locator(".correction", has_text="exactly").wait_for()
        tab_to(page, "[data-key=again]", 160)
        page.keyboard.press("Enter")
        page.locator(".stale").wait_for(state="detached", timeout=60_000)
        assert page.errors == []


def test_alternatives_and_the_check_of_the_order(server: Server, grounded: str) -> None:
    with studio_page(server, width=1280, height=800) as page:
        page.goto(f"/#/{grounded}/graph")
        page.locator(".node").first.wait_for()
        first, second = (page.locator(".node").nth(place).get_attribute("data-step") for place in (0, 2))
        page.locator(f'.node[data-step="{second}"]').click()
        page.get_by_label("Step to do instead").select_option(first)
        page.get_by_role("button", name="Add an alternative").click()
        page.locator(f'.node[data-step="{second}"] .mark', has_text="or").wait_for()
        assert page.locator(f'.node[data-step="{first}"] .mark').text_content() == "either"
        assert server.ask("GET", f"projects/{grounded}/flow")["alternatives"] == [[[first], [second]]]
        page.get_by_label("Text").fill("Something else")  # other edits keep it
        page.get_by_label("Text").press("Enter")
        page.locator(f'.node[data-step="{second}"] .words', has_text="Something else").wait_for()
        page.get_by_role("button", name="Do it in any case").click()
        page.locator(".mark").first.wait_for(state="detached")
        for _ in range(3):
            page.get_by_role("button", name="Undo").click()
        until(page, "!document.querySelector('.canvas').textContent.includes('Something else')")

        page.goto(f"/#/{grounded}/result")
        page.locator(".segment").first.wait_for()
        page.get_by_role("tab", name="Review").click()
        assert page.locator(".verdict").count() == 0
        page.get_by_role("button", name="Check the order").click()
        page.locator(".verdict").wait_for(timeout=30_000)
        found = server.ask("GET", f"projects/{grounded}/check")
        assert found["format"] == "graph2vid-check"
        assert page.locator(".check .finding").count() == len(found["deviations"])

        # On a phone what can be done to a segment is at hand where it is touched, and nothing moves away.
        page.set_viewport_size(PHONE)
        segment = page.locator(".lanes .segment").nth(1)
        segment.evaluate("one => one.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(100)
        before = segment.bounding_box()
        segment.click()
        sheet = page.locator(".correct-chosen").bounding_box()
        assert sheet["y"] + sheet["height"] == PHONE["height"] and sheet["y"] > PHONE["height"] / 3
        assert page.locator("video").bounding_box()["y"] >= 0  # the video stays in sight
        assert segment.bounding_box() == before
        page.get_by_role("button", name="Choose nothing").click()
        assert page.locator(".correct-chosen").is_hidden()
        assert page.errors == []


def test_two_windows_and_a_studio_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path / "projects") as server, studio_page(server) as page:
        name = server.ask("POST", "projects/sample")["name"]
        server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
        page.goto(f"/#/{name}/graph")
        page.locator('.node[data-step="chop"]').click()

        # What another window did is shown, and this one's edit is not made on top of it.
        edit = {"op": "rename", "step": "fry", "text": "Fry it elsewhere."}
        server.ask("POST", f"projects/{name}/edits", json={"edit": edit})
        page.get_by_label("Text").fill("Chop it here.")
        page.get_by_label("Text").press("Enter")
        said(page, "changed elsewhere")
        page.locator('.node[data-step="fry"] .words', has_text="Fry it elsewhere.").wait_for()
        page.get_by_label("Text").fill("Chop it here.")
        page.get_by_label("Text").press("Enter")
        page.locator('.node[data-step="chop"] .words', has_text="Chop it here.").wait_for()

        # More undoing than there is to undo, quicker than the server.
        page.errors.clear()
        page.locator(".node").first.focus()
        for _ in range(12):
            page.keyboard.press("Control+z")
        page.get_by_text("There is no flow graph yet").wait_for()
        page.keyboard.press("Control+Shift+z")
        page.locator(".node").first.wait_for()
        assert page.errors == []

        # The page is loaded anew while it works: it goes on to show how far that is.
        page.goto(f"/#/{name}/video")
        page.get_by_role("button", name="Ground the video").click()
        with server.held():
            page.reload()
            page.locator(".job-bar .job-stage", has_text="…").wait_for()
            assert page.get_by_role("button", name="Running …").is_disabled()
            # Killed while it works, and started anew: that is said, and nothing is lost.
            server.kill()
        page.locator(".job-stage", has_text="does not answer").wait_for()
        with serving(tmp_path / "projects", "--port", str(httpx.URL(server.address).port)) as again:
            page.locator(".toast", has_text="The studio was ended while this ran").wait_for()
            assert page.locator(".job-bar").is_hidden()
            page.get_by_role("button", name="Ground the video").click()
            page.locator(".segment").first.wait_for(timeout=60_000)
            assert len(again.ask("GET", f"projects/{name}/flow")["steps"]) == 10


def test_width_of_a_phone_and_accessibility_there(server: Server, grounded: str) -> None:
    """At the width of a desk all states are checked in ``test_looks.py``."""
    with studio_page(server, width=1280, height=800) as page:
        for at in ("", "docs", *PAGES):
            page.goto("about:blank")
            page.goto("/docs" if at == "docs" else f"/#/{grounded}/{at}" if at else "/")
            page.locator({"result": ".segment", "graph": ".node", "docs": ".operation"}.get(at, "h1")).first.wait_for()
            if at == "graph":
                page.locator(".node").nth(2).click()
            if at == "result":
                page.locator(".lanes .segment").nth(4).click()
            page.set_viewport_size(PHONE)
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), at
            assert axe_findings(page) == [], at
            page.set_viewport_size({"width": 1280, "height": 800})
        assert page.errors == []


def test_what_users_write_is_text(server: Server, tmp_path: Path) -> None:
    evil = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    name = server.ask("POST", "projects", json={"title": evil})["name"]
    steps = [{"id": evil, "text": evil}, {"id": "b", "text": "mix"}]
    flow = {"format": "graph2vid-flow", "version": 1, "title": evil, "steps": steps, "edges": [[evil, "b"]]}
    server.ask("PUT", f"projects/{name}/flow", params={"name": "x.json"}, content=json.dumps(flow).encode())
    server.ask("PATCH", f"projects/{name}", json={"captions": {"place": "folder", "name": "dinner.vtt"}})
    assert server.wait(server.ask("POST", f"projects/{name}/ground"))["state"] == "done"
    server.ask("POST", f"projects/{name}/corrections", json={"kind": "forbid", "step": evil, "start": 0, "end": 9})
    with studio_page(server) as page:
        for at in ("", *PAGES):
            page.goto("about:blank")
            page.goto(f"/#/{name}/{at}" if at else "/")
            page.locator({"result": ".lane", "graph": ".node"}.get(at, "h1")).first.wait_for()
            if at == "graph":
                page.locator(".node").first.click()
            page.wait_for_timeout(100)
            assert page.locator("main img:not(.still), main script").count() == 0
            assert "owned" not in page.title().replace(evil, "")
        assert page.errors == []


def test_uploads_cancel_and_refusals(server: Server, tmp_path: Path) -> None:
    name = server.ask("POST", "projects/sample")["name"]
    server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=SAMPLE.flow.read_bytes())
    wrong = tmp_path / "page.mp4"
    wrong.write_bytes(b"<html>this is not a video</html>")
    with studio_page(server) as page:
        page.goto(f"/#/{name}/procedure")
        procedure = tmp_path / "salad.md"
        procedure.write_text("# Salat\n\n- Schäle die Gurke.\n- Mische alles.\n", encoding="utf-16")
        page.locator("input[type=file]").set_input_files(procedure)
        until(page, "document.querySelector('#procedure').value.includes('Schäle die Gurke.')")
        page.goto(f"/#/{name}/video")
        chooser = page.locator(".drop-zone input[type=file]")
        chooser.set_input_files(SAMPLE.captions)
        page.locator(".file", has_text="added here").wait_for()
        until(page, "document.querySelector('[name=captions]:checked').dataset.key.includes('upload')")
        chooser.set_input_files(wrong)
        said(page, "page.mp4 is named like a video and is none")
        assert len(page.errors) == 1  # the browser itself notes the refusal
        page.errors.clear()
        page.get_by_role("button", name="Ground the video").click()
        page.get_by_role("button", name="Cancel").wait_for()
        run = page.locator("[data-key=run]")
        assert run.inner_text() == "Running …" and run.is_disabled()
        page.get_by_role("button", name="Cancel").click()
        said(page, "Cancelled")
        assert page.locator(".job-bar").is_hidden() and run.inner_text() == "Ground the video"
        assert page.errors == []


def test_a_procedure_changed_in_another_window_stays(server: Server) -> None:
    name = server.ask("POST", "projects", json={"title": "Tea"})["name"]
    with studio_page(server) as page:
        page.goto(f"/#/{name}/procedure")
        words = page.locator("#procedure")
        for text in ("1. Boil the water.", "1. Boil the water.\n2. Pour it."):  # its own changes are no conflict
            words.fill(text)
            words.blur()
            until(page, "!document.querySelector('.panel [role=status]').textContent.includes('not saved')")
        server.ask("PUT", f"projects/{name}/procedure", content=b"1. Warm the pot.")
        words.fill("1. Boil the milk.")
        words.blur()
        said(page, "the procedure has been changed elsewhere meanwhile")
        assert words.input_value() == "1. Boil the milk."
        assert server.ask("GET", f"projects/{name}")["procedure"] == "1. Warm the pot."


def test_how_far_a_job_is_and_how_long_it_takes(server: Server) -> None:
    """In words, without the job."""
    with studio_page(server) as page:
        for done, total, seconds, words in (
            (None, None, 2, ""),
            (None, None, 65, "for 65 seconds"),
            (0.1, 20, 9, "1%"),  # too early to tell
            (5, 20, 10, "25% · about 30 seconds left"),
            (5, 20, 100, "25% · about 5 minutes left"),
            (20, 20, 60, "100% · about 1 second left"),
        ):
            job = {"done": done, "total": total, "seconds": seconds}
            assert page.evaluate("async job => (await import('/static/parts.js')).timeLeft(job)", job) == words, job


STRIP = """
async () => {
  const told = [];
  window.IntersectionObserver = class { constructor(tell) { told.push(tell); } observe() {} };
  const { makeStrip } = await import('/view/strip.js');
  const events = {};
  const state = { sight: { width: 10, left: 0, right: 1 }, on: (event, act) => (events[event] = act) };
  let drawn = 0;
  document.body.append(makeStrip(state, { name: 'x', height: 10, draw: () => (drawn += 1) }));
  const frame = () => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));
  const found = [];
  for (const seen of [[true], [false], [false, true], [true, false], [true]]) {
    told[0](seen.map(isIntersecting => ({ isIntersecting })));
    events.layout();
    await frame();
    found.push(drawn);
  }
  return found;
}
"""


def test_what_is_in_sight_is_drawn_on_a_busy_machine_too(server: Server) -> None:
    """Whether it is seen is then told late, several times at once."""
    with studio_page(server) as page:
        assert page.evaluate(STRIP) == [1, 1, 2, 2, 3]


def test_settings_are_set_and_emptied(server: Server) -> None:
    name = server.ask("POST", "projects/sample")["name"]
    with studio_page(server) as page:
        page.goto(f"/#/{name}/video")
        page.locator("[data-key=settings]").click()
        for key, text, value in (("gamma", "2.5", 2.5), ("skip", "constant:4", "constant:4"), ("gamma", "", 1)):
            page.locator(f"[data-key={key}]").fill(text)
            with page.expect_response(_is_change):
                page.locator(f"[data-key={key}]").blur()
            until(page, f"document.querySelector('[data-key={key}]').value == '{value}'")
            assert server.ask("GET", f"projects/{name}")[key] == value
        with page.expect_response(_is_change):
            page.locator("[data-key=contiguous]").uncheck()
        until(page, "!document.querySelector('[data-key=contiguous]').checked")
        assert page.errors == []
    assert server.ask("GET", f"projects/{name}")["contiguous"] is False


def test_who_goes_on_while_a_page_loads_is_led_there(server: Server, grounded: str) -> None:
    """The answer that is late must not lead back to what was asked for first."""
    with studio_page(server) as page:
        page.route("**/api/about", lambda route: (page.wait_for_timeout(300), route.continue_()))
        page.reload(wait_until="commit")
        page.wait_for_timeout(150)
        page.evaluate(f"location.hash = '#/{grounded}/procedure'")
        page.locator("#procedure").wait_for()
        page.wait_for_timeout(700)
        assert page.url.endswith("/procedure") and page.locator("#procedure").count() == 1
