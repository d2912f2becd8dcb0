"""Make the pictures of the documentation with the product itself: ``python docs/pictures.py``.

Those of the report need Chromium and playwright.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from graph2vid import sample
from graph2vid._files import write_text
from graph2vid.evidence import read_captions
from graph2vid.grounding.timeline import print_timeline
from graph2vid.report import write_report

ASSETS = Path(__file__).parent / "assets"

# Rich's picture of a terminal, without the fonts that it would fetch from elsewhere.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    """Draw the sample's flow graph and its grounding, and look at the report of the narrated one."""
    bundled = sample.load()
    write_text(ASSETS / "pancakes.svg", bundled.flow.to_svg())
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    graph, _ = sample.ground_sample(bundled)
    print_timeline(graph.grounding, console)
    picture = console.export_svg(title="graph2vid demo", code_format=FORMAT, unique_id="demo")
    write_text(ASSETS / "demo.svg", picture)
    report()


def report() -> None:
    """Take pictures of the report that ``graph2vid demo`` writes."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from browser import chromium_page, wait_until

    narrated = sample.load_narrated()
    cues = read_captions(narrated.files.captions)
    graph, linear = (found.grounding for found in sample.ground_narrated_sample(narrated, narrated.flow, cues))
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
                page.wait_for_timeout(500)  # the player's own controls fade
                page.screenshot(path=ASSETS / f"{name}.png")


if __name__ == "__main__":
    main()
