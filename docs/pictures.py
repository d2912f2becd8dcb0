"""Make the pictures of the documentation with the product itself: ``python docs/pictures.py [NAME…]``.

Without names all are made: sample, lattice, report, studio, states, clips. The last four need Chromium, and playwright.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import graph2vid as g2v
from graph2vid import sample
from graph2vid._files import write_bytes, write_text
from graph2vid.evidence import Transcript, read_captions
from graph2vid.grounding.timeline import print_timeline
from graph2vid.report import write_report

ASSETS = Path(__file__).parent / "assets"

# Rich's picture of a terminal, without the fonts that it would fetch from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main(names: list[str]) -> None:
    """Make the pictures that are named, or all."""
    pictures = {"sample": grounded_sample, "lattice": lattice, "report": report}
    pictures |= {"studio": studio, "states": states, "clips": clips}
    for name in names or pictures:
        pictures[name]()


def grounded_sample() -> None:
    """Draw the sample's flow graph, and its grounding as the terminal shows it."""
    bundled = sample.load()
    write_text(ASSETS / "pancakes.svg", bundled.flow.to_svg())
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    graph, _ = sample.ground_sample(bundled)
    print_timeline(graph.grounding, console)
    picture = console.export_svg(title="graph2vid demo", code_format=FORMAT, unique_id="demo")
    write_text(ASSETS / "demo.svg", picture)


SALAD = g2v.FlowGraph.from_edges(
    [("peel", "Peel the cucumber."), ("slice", "Slice it."), ("tomato", "Cut the tomato."), ("mix", "Mix everything.")],
    [("peel", "slice"), ("slice", "mix"), ("tomato", "mix")],
    title="A salad",
)


def lattice() -> None:
    """Draw a small flow graph, its order ideals, its tSort graph with a path, and the path over the costs."""
    match = np.full((4, 12), 3.0) - np.random.default_rng(3).random((4, 12))
    for step, clips in ((0, slice(1, 4)), (2, slice(4, 6)), (1, slice(7, 9)), (3, slice(9, 12))):
        match[step, clips] -= 2.2
    found = g2v.align(SALAD, match, drop=1.6)
    assert found.order == (0, 2, 1, 3), found.order
    write_text(ASSETS / "lattice-flow.svg", SALAD.to_svg())
    write_text(ASSETS / "lattice-ideals.svg", ideals_svg(SALAD))
    write_text(ASSETS / "lattice-path.svg", path_svg(SALAD, found.order))
    import matplotlib

    matplotlib.use("Agg")
    figure = found.plot_costs(match, 1.6).figure
    assert figure is not None
    figure.savefig(ASSETS / "lattice-costs.png", dpi=120, metadata={"Software": None})


def ideals_svg(flow: g2v.FlowGraph) -> str:
    """Draw the order ideals of a flow graph: an arrow adds a step."""
    graph = g2v.TSortGraph.compile(flow)
    done = [[step for step in range(len(flow)) if int(mask[0]) >> step & 1] for mask in graph.masks]
    names = ["{ " + ", ".join(flow.ids[step] for step in ideal) + " }" if ideal else "∅" for ideal in done]
    into = np.repeat(np.arange(graph.n_ideals), np.diff(graph.state_start))
    edges = [(names[before], names[after]) for before, after in zip(graph.state_from.tolist(), into, strict=True)]
    drawn = g2v.FlowGraph.from_edges([(name, name) for name in names], edges, title="Its order ideals").to_svg()
    return re.sub(r"\d+ steps · \d+ threads", f"{graph.n_ideals} legal sets of finished steps", drawn)


def path_svg(flow: g2v.FlowGraph, order: Sequence[int]) -> str:
    """Draw the tSort graph of a flow graph with one path marked, and the states beside it faded."""
    drawn = g2v.TSortGraph.compile(flow).to_svg()
    on_path = {"nothing done", "all done"}
    for number, step in enumerate(order, start=1):
        done = ", ".join(flow.ids[one] for one in sorted(order[:number]))
        on_path.add(f"{flow.ids[step]}, last of {done}")
    line = []

    def state(found: re.Match[str]) -> str:
        if found["title"] not in on_path:
            return found[0].replace("<g>", '<g opacity="0.35">', 1)
        x, y, width, height = (float(found[name]) for name in ("x", "y", "width", "height"))
        line.append((x + width / 2, y + height / 2))
        return found[0]

    box = r'x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" width="(?P<width>[\d.]+)" height="(?P<height>[\d.]+)"'
    drawn = re.sub(rf"<g><title>(?P<title>[^<]*)</title><rect [^>]*?{box}", state, drawn)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in sorted(line, key=lambda point: point[1]))
    marked = f'<polyline points="{points}" fill="none" stroke="#e4572e" stroke-width="5" stroke-linejoin="round"/>'
    drawn = drawn.replace(f">{flow.title}<", ">Its tSort graph, and one path<")
    first = drawn.index("<g><title>")
    return drawn[:first] + marked + drawn[first:]


def clips() -> None:
    """Make the card and the contact sheet of the narrated sample."""
    narrated = sample.load_narrated()
    said = Transcript(read_captions(narrated.files.captions), narrated.duration)
    graph, _ = sample.ground_narrated_sample(narrated, narrated.flow, said)
    with tempfile.TemporaryDirectory() as folder:
        graph.grounding.clips(folder, video=narrated.files.video, cards=["png"])
        for name in ("card.png", "contact-sheet.png"):
            write_bytes(ASSETS / name, (Path(folder) / name).read_bytes())


def report() -> None:
    """Take pictures of the report that ``graph2vid demo`` writes."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from browser import chromium_page, wait_until

    narrated = sample.load_narrated()
    said = Transcript(read_captions(narrated.files.captions), narrated.duration)
    graph, linear = (found.grounding for found in sample.ground_narrated_sample(narrated, narrated.flow, said))
    truth = [(step, start, end) for step, (start, end) in narrated.truth.items()]
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "report.html"
        found = replace(graph, video=str(narrated.files.video))
        write_report(page_file, found, compare={"Order as written": linear, "Truth": truth})
        for name, dark, size in (
            ("report", False, (1440, 1470)),
            ("report-dark", True, (1440, 1470)),
            ("report-phone", False, (390, 844)),
        ):
            with chromium_page(offline=True, dark=dark, width=size[0], height=size[1]) as page:
                page.goto(page_file.as_uri())
                page.locator(".lanes .segment").nth(4).click()
                page.mouse.move(1, 1)
                page.evaluate("scrollTo(0, 0)")
                wait_until(page, "document.querySelector('video').readyState >= 2")
                page.wait_for_timeout(500)  # what moves has come to rest
                page.screenshot(path=ASSETS / f"{name}.png")


def studio() -> None:
    """Take pictures of the studio with the sample, light and dark, and on a phone."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from browser import chromium, wait_until
    from studios import serving, studio_page

    narrated = sample.load_narrated()
    true = {narrated.flow.ids[step]: span for step, span in narrated.truth.items()}

    in_states = ("graph", "video", "result", "refused")  # which has them dark

    def shown(page: Any, name: str) -> None:
        wait_until(page, "[...document.querySelectorAll('video')].every(one => !one.seeking && one.readyState > 1)")
        for scheme, suffix in (("dark", "-dark"), ("light", "")):
            if scheme == "light" or name not in in_states:
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(900)  # what moves has come to rest
                page.screenshot(path=ASSETS / "studio" / f"{name}{suffix}.png")

    def opened(page: Any, name: str, tab: str) -> None:
        page.goto("about:blank")
        page.goto(f"/#/{name}/{tab}")
        page.locator({"graph": ".node", "result": ".lanes .segment"}.get(tab, ".checks")).first.wait_for()

    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "projects") as server, chromium() as browser:
        name = server.ask("POST", "projects/sample")["name"]
        server.wait(server.ask("POST", f"projects/{name}/parse", json={"parser": "rules"}))
        with studio_page(server, browser, height=720) as page:
            opened(page, name, "graph")
            page.locator('.node[data-step="5"]').click()
            shown(page, "graph")
            opened(page, name, "video")
            shown(page, "video")
        flow = narrated.files.flow.read_bytes()
        server.ask("PUT", f"projects/{name}/flow", params={"name": "s.flow"}, content=flow)
        server.wait(server.ask("POST", f"projects/{name}/ground"))
        server.wait(server.ask("POST", f"projects/{name}/check"))
        server.wait(server.ask("POST", f"projects/{name}/film")["job"])
        for suffix, width, height in (("", 1280, 720), ("-phone", 390, 844)):
            touch = {"has_touch": True, "is_mobile": True} if suffix else {}
            with studio_page(server, browser, width=width, height=height, **touch) as page:
                opened(page, name, "result")
                page.locator('.lanes [data-index="3"]').click()
                page.mouse.move(1, 1)
                shown(page, f"result{suffix}")
        with studio_page(server, browser, height=720) as page:
            opened(page, name, "result")
            page.keyboard.press("?")
            shown(page, "keys")
            page.keyboard.press("Escape")
            page.locator("summary", has_text="Export").click()
            shown(page, "export")
            page.keyboard.press("Escape")
            page.get_by_role("tab", name="Transcript").click()
            shown(page, "transcript")
            page.get_by_role("tab", name="Correct").click()
            # The segment that is farthest from the truth at its end is dragged there.
            found = server.ask("GET", f"projects/{name}/result")["segments"]
            index = max(range(len(found)), key=lambda at: abs(found[at]["end"] - true[found[at]["step"]][1]))
            step, (start, end) = found[index]["step"], true[found[index]["step"]]
            page.locator(f'.lanes [data-index="{index}"]').click()
            grip = page.locator(".grip.end").bounding_box()
            track = page.locator(".lanes .track").first.bounding_box()
            page.mouse.move(grip["x"] + 12, grip["y"] + 8)
            page.mouse.down()
            page.keyboard.down("Alt")
            page.mouse.move(track["x"] + end / narrated.duration * track["width"], grip["y"] + 8, steps=5)
            shown(page, "dragging")
            page.keyboard.press("Escape")
            page.mouse.up()
            page.keyboard.up("Alt")
            held = {"kind": "exact", "step": step, "start": round(start), "end": round(end)}
            server.ask("POST", f"projects/{name}/corrections", json=held)
            page.evaluate("window.dispatchEvent(new Event('focus'))")
            page.locator(".correction").wait_for()
            # Its neighbour cannot be there, too.
            other = page.locator(f'.lanes [data-index="{index + 1}"]')
            other.click()
            grip = page.locator(".grip.start").bounding_box()
            page.mouse.move(grip["x"] + 12, grip["y"] + 8)
            page.mouse.down()
            page.mouse.move(track["x"] + (start + 1) / narrated.duration * track["width"], grip["y"] + 8, steps=5)
            page.mouse.up()
            page.locator(".toast.bad").wait_for()
            shown(page, "refused")
            server.wait(server.ask("POST", f"projects/{name}/ground"))
            opened(page, name, "result")
            page.locator(f'.lanes [data-index="{index}"]').click()
            page.mouse.move(1, 1)
            # Both results, one over the other, at the top of the timeline.
            top = "document.querySelector('.rows').offsetTop - document.querySelector('canvas.axis').offsetHeight"
            page.evaluate(f"document.querySelector('.time-scroll').scrollTop = {top}")
            shown(page, "corrected")


def states() -> None:
    """Take small pictures of each state of the studio, light and dark, and of a project that has learnt."""
    tests = Path(__file__).parent.parent / "tests"
    sys.path += [str(tests), str(tests / "studio")]
    from test_looks import filmed, looks

    from browser import chromium, wait_until
    from studios import studio_page
    from task_corpus import FOREIGN

    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        with filmed(Path(place)) as films:
            for name, picture in looks(films, browser, ["usual"], hide=False, device_scale_factor=0.6):
                time.sleep(0.5)  # what moves has come to rest
                (ASSETS / "studio" / f"state-{name.replace('-usual', '')}.png").write_bytes(picture())
        with filmed(Path(place) / "learnt", number=8, sayings=FOREIGN) as films:
            server, path = films.server, f"projects/{films.many}"
            truth = {file.stem: spans for file, spans in films.truth.items()}
            for video in server.ask("GET", f"{path}/videos")["videos"][:3]:
                about = {"video": video["id"]}
                for step, start, end in truth[Path(video["title"]).stem]:
                    held = {"kind": "exact", "step": f"s{step}", "start": start, "end": end}
                    server.ask("POST", f"{path}/corrections", params=about, json=held)
                server.ask("PUT", f"{path}/checked", params=about, json={"checked": True})
            server.wait(server.ask("POST", f"{path}/learn"))
            with studio_page(server, browser, height=720) as page:
                page.goto(f"/#/{films.many}/video")
                page.locator(".lesson").wait_for()
                page.locator(".words-of-steps, details.more summary").first.click()
                seen = "[...document.images].filter(one => one.getBoundingClientRect().top < innerHeight)"
                wait_until(page, f"{seen}.every(one => one.complete && one.naturalWidth)")
                page.wait_for_timeout(400)  # what moves has come to rest
                page.screenshot(path=ASSETS / "studio" / "videos.png")


if __name__ == "__main__":
    main(sys.argv[1:])
