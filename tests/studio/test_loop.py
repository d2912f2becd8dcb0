"""The studio's loop in a real browser: three videos of eight are corrected, the others improve, undo restores them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import axe_findings, wait_until
from films import long_film
from studios import Server, serving, studio_page
from task_corpus import FOREIGN, STEPS, made_up

Spans = list[tuple[int, float, float]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Spans]:
    """Eight videos that use none of the words of the steps; what they show."""
    folder = tmp_path_factory.mktemp("loop") / "films"
    folder.mkdir()
    long_film(folder / "v0.mp4", 75)
    return dict(made_up(folder, 8, sayings=FOREIGN))


@pytest.fixture(scope="module")
def server(corpus: dict[Path, Spans]) -> Iterator[Server]:
    """A studio with the corpus as its folder of videos."""
    folder = next(iter(corpus)).parent
    with serving(folder.parent / "projects", "--videos", str(folder)) as server:
        yield server


def shown(server: Server, name: str, video: str) -> dict[str, tuple[float, float]]:
    found = server.ask("GET", f"projects/{name}/result", params={"video": video})["segments"]
    return {part["step"]: (part["start"], part["end"]) for part in found}


def share_right(server: Server, name: str, video: str, truth: Spans) -> float:
    """Return the share of the true time of the steps in which the right step is found."""
    found = shown(server, name, video)
    spans = [(*found.get(f"s{step}", (0.0, 0.0)), start, end) for step, start, end in truth]
    right = sum(max(0.0, min(b, end) - max(a, start)) for a, b, start, end in spans)
    return right / sum(end - start for _, start, end in truth)


def correct_by_hand(page: Any, server: Server, name: str, video: str, truth: Spans) -> None:
    """Put every step where it is: segments are moved, ends set at the playhead, missing steps begun and ended there."""
    page.goto(f"/#/{name}/result/{video}")
    page.locator(".lanes .lane").first.wait_for()
    wait_until(page, f"document.querySelector('.which-video select').value === '{video or 'first'}'")
    end_of_video = float(page.locator("canvas.axis").get_attribute("aria-valuemax"))

    def go(seconds: float) -> None:
        box = page.locator(".lanes .track").first.bounding_box()
        axis = page.locator("canvas.axis").bounding_box()
        page.mouse.click(box["x"] + min(seconds / end_of_video, 0.999) * box["width"], axis["y"] + 10)

    for step, start, end in sorted(truth, key=lambda span: span[1]):
        number = page.locator(".correction").count()
        lane = page.locator(f'.lanes .lane[data-step="{step}"]')
        segment = lane.locator(".segment")
        lane.locator(".lane-name").click()
        if segment.count():
            span = page.evaluate("one => [one.segment.start, one.segment.end]", segment.element_handle())
            track, box = lane.locator(".track").bounding_box(), segment.bounding_box()
            if abs(span[0] - start) > 0.4:
                at = box["x"] + box["width"] / 2
                page.mouse.move(at, box["y"] + 8)
                page.mouse.down()
                by = (start - span[0]) / end_of_video * track["width"]
                page.mouse.move(at + by, box["y"] + 8, steps=6)
                page.mouse.up()
                page.locator(".correction").nth(number).wait_for()
        else:
            go(start)
            page.keyboard.press("i")
        go(end)
        page.keyboard.press("o")
        page.locator(".correction").nth(number).wait_for()
        expected = f"{start // 60:.0f}:{start % 60:04.1f} – {end // 60:.0f}:{end % 60:04.1f}"
        page.locator(".correction", has_text=expected).wait_for()


def test_three_of_eight_are_corrected_the_others_improve_and_undo_restores(
    server: Server, browser: Any, corpus: dict[Path, Spans]
) -> None:
    name = str(server.ask("POST", "projects", json={"title": "Breakfast"})["name"])
    flow = "\n".join(f"s{at}: {text}" for at, text in enumerate(STEPS))
    server.ask("PUT", f"projects/{name}/flow", params={"name": "b.flow"}, content=flow.encode())
    truth = {path.stem: spans for path, spans in corpus.items()}
    with studio_page(server, browser, height=800) as page:
        page.goto(f"/#/{name}/video")
        page.get_by_role("link", name="Add more videos").click()
        page.get_by_role("button", name="Add all 8").click()
        page.locator(".video-card").nth(7).wait_for()
        page.get_by_role("button", name="Ground all (8)").click()
        page.get_by_role("button", name="All are grounded").wait_for(timeout=90_000)
        page.locator(".next-video").first.wait_for()
        assert page.locator(".next-video").count() >= 3
        assert not axe_findings(page)

        ids = {
            one["title"].partition(".")[0]: one["id"] for one in server.ask("GET", f"projects/{name}/videos")["videos"]
        }
        taught = [text.partition(".")[0] for text in page.locator(".next-video > a").all_inner_texts()[:3]]
        rest = [title for title in truth if title not in taught]
        before = {title: share_right(server, name, ids[title], truth[title]) for title in rest}
        kept = {title: shown(server, name, ids[title]) for title in rest}
        for place, title in enumerate(taught):
            correct_by_hand(page, server, name, ids[title], truth[title])
            page.keyboard.press("c")
            if place < 2:
                page.locator(".toast", has_text=f"{place + 1} of 3").wait_for()
        # It learns by itself, and says how far it is and what was gained.
        page.locator(".job-bar .job-stage", has_text="…").wait_for()
        page.locator(".toast", has_text="Learnt from 3 checked videos: +").wait_for(timeout=90_000)
        after = {title: share_right(server, name, ids[title], truth[title]) for title in rest}
        print("before", before, "after", after)
        assert all(after[title] > before[title] for title in rest), (before, after)
        page.goto(f"/#/{name}/video")
        page.locator(".lesson .gain", has_text="+").wait_for()
        assert page.locator(".video-card .badge-note.good", has_text="checked").count() == 3
        assert not axe_findings(page)

        # What the others were before stands beside the new result, and undo brings it back.
        page.goto(f"/#/{name}/result/{ids[rest[0]]}")
        page.locator('.row[data-row="Before"]').wait_for()
        page.keyboard.press("Control+z")
        page.locator(".toast", has_text="Undone: what was learnt").wait_for()
        page.locator('.row[data-row="Before"]').wait_for(state="detached")
        assert {title: shown(server, name, ids[title]) for title in rest} == kept
        assert server.ask("GET", f"projects/{name}/videos")["lesson"] is None
        assert not page.errors, page.errors


def test_two_videos_are_compared_step_by_step(server: Server, browser: Any, corpus: dict[Path, Spans]) -> None:
    name = server.ask("GET", "projects")[0]["name"]
    with studio_page(server, browser, height=800) as page:
        page.goto(f"/#/{name}/video")
        for at in (0, 1):
            page.locator(".compare-tick input").nth(at).check()
        page.get_by_role("button", name="Compare the two").click()
        page.locator(".compare-table tbody tr").nth(2).wait_for()
        assert page.locator(".compared").count() == 2
        wait_until(page, "document.querySelector('video')?.readyState >= 1")
        span = page.locator(".compare-table tbody .link-name").first
        span.click()
        wait_until(page, "document.querySelector('video').currentTime > 0")
        box = page.locator(".mini.tall").first.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 8)
        wait_until(
            page, "(one => Math.abs(one.currentTime / one.duration - 0.5) < 0.1)(document.querySelector('video'))"
        )
        for words, paused in (("Play both", False), ("Pause", True)):
            page.get_by_role("button", name=words).click()
            wait_until(
                page, f"[...document.querySelectorAll('video')].every(one => one.paused === {str(paused).lower()})"
            )
        page.get_by_role("button", name="Play both").wait_for()
        assert not axe_findings(page)
        page.get_by_role("combobox", name="The second video").select_option(index=3)
        page.locator(".compared h2", has_text="v3").wait_for()
        assert not page.errors, page.errors
