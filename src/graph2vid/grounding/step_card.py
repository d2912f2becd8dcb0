"""A card to print, with the text, time and picture of each step: HTML, and PDF and PNG through a browser."""

from __future__ import annotations

import base64
import html
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import write_bytes
from graph2vid.errors import Graph2VidError, MissingDependencyError
from graph2vid.flow import colour_of, plain
from graph2vid.grounding.grounding_result import Grounding, file_name
from graph2vid.grounding.times import format_time

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
"""Programs that print pages, the first that is installed."""

CARD_KINDS = ("html", "pdf", "png")
_WIDTH = 900  # pixels
_MOST_HEIGHT = 16_000
_SECONDS = 120
_MARGIN = 29  # pixels below the last row

_STYLE = """
@page { size: A4; margin: 14mm; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px; max-width: 900px; background: #fff; color: #0f172a;
  font: 15px/1.45 Inter, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { margin: 0 0 2px; font-size: 26px; line-height: 1.2; }
.about { margin: 0 0 20px; color: #64748b; font-size: 13px; }
ol { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: 1fr 1fr; gap: 18px 22px; }
li { break-inside: avoid; border: 1px solid #e2e8f0; border-radius: 10px; overflow: hidden;
  display: flex; flex-direction: column; }
img { display: block; width: 100%; aspect-ratio: 16 / 9; object-fit: cover; background: #f1f5f9; }
.words { padding: 10px 12px 12px; display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; }
.number { grid-row: span 2; width: 30px; height: 30px; border-radius: 50%; border: 3px solid; font-weight: 700;
  font-size: 13px; line-height: 24px; text-align: center; }
.number span { color: #0f172a; }
.text { margin: 0; }
.time { margin: 0; color: #64748b; font-size: 13px; font-variant-numeric: tabular-nums; }
.absent { border-style: dashed; }
@media (max-width: 560px) { ol { grid-template-columns: 1fr; } body { padding: 16px; } }
@media print { body { padding: 0; max-width: none; } }
""".strip()


def card_html(grounding: Grounding, pictures: Mapping[int, bytes]) -> str:
    """Return the card as a page that needs nothing beside it.

    Parameters
    ----------
    grounding : Grounding
    pictures : mapping of int to bytes
        JPEG, by step; steps without have none.
    """
    flow = grounding.flow
    title = plain(flow.title) or "Steps"
    items = []
    for step, text in enumerate(flow.texts):
        found = grounding.segments_of(step)
        times = ", ".join(f"{format_time(one.start)}–{format_time(one.end)}" for one in found) or "not shown"
        doubt = " (doubtful)" if found and all(one.is_doubtful for one in found) else ""
        image = ""
        if step in pictures:
            data = base64.b64encode(pictures[step]).decode()
            image = f'<img alt="" src="data:image/jpeg;base64,{data}">'
        items.append(
            f'<li{"" if found else " class=absent"}>{image}<div class="words">'
            f'<span class="number" style="color:{colour_of(step)}"><span>{step + 1}</span></span>'
            f'<p class="text">{html.escape(plain(text) or flow.ids[step])}</p>'
            f'<p class="time">{times}{doubt}</p></div></li>'
        )
    about = f"{grounding.count} · {html.escape(file_name(grounding.video or ''))}".rstrip(" ·")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        f'<h1>{html.escape(title)}</h1>\n<p class="about">{about}</p>\n<ol>\n' + "\n".join(items) + "\n</ol>\n"
        "</body>\n</html>\n"
    )


def print_card(page: str, target: Path) -> None:
    """Print a page to PDF or PNG, by the suffix of the target, with the browser that is installed.

    Raises
    ------
    MissingDependencyError
        There is none.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="graph2vid-card-") as folder:
        source, made = Path(folder) / "card.html", Path(folder) / f"card{target.suffix}"
        source.write_text(page, encoding="utf-8")
        how = [f"--print-to-pdf={made}", "--no-pdf-header-footer"]
        if target.suffix == ".png":
            rows = page.count("<li") // 2 + 1
            tall = min(200 + 420 * rows, _MOST_HEIGHT)
            how = [f"--screenshot={made}", f"--window-size={_WIDTH},{tall}", "--hide-scrollbars"]
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", *how]
        try:
            done = subprocess.run(
                [*command, source.as_uri()],
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Graph2VidError(f"cannot write {target}: {browser} does not print ({error})") from error
        if not made.is_file():
            why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            raise Graph2VidError(f"cannot write {target}: {browser} does not print ({why[0]})")
        write_bytes(target, _without_margin(made) if target.suffix == ".png" else made.read_bytes())


def find_browser() -> str:
    """Return the path of a browser that prints pages."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise MissingDependencyError(
        "a card is printed to PDF and PNG by Chromium or Chrome, which is not installed: install it "
        "(apt-get install chromium), or take the card as HTML and print that"
    )


def _without_margin(path: Path) -> bytes:
    """Return a picture (PNG) without the empty rows below."""
    import av

    with av.open(str(path)) as container:
        image: NDArray[np.uint8] = np.asarray(next(container.decode(video=0)).to_ndarray(format="rgb24"), np.uint8)
    filled = np.flatnonzero((image != image[-1, -1]).any(axis=(1, 2)))
    below = int(filled[-1]) + _MARGIN if len(filled) else len(image)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image[:below]), format="rgb24")
    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt = frame.width, frame.height, "rgb24"
    codec.time_base = Fraction(1, 25)
    return b"".join(bytes(packet) for packet in [*codec.encode(frame), *codec.encode(None)])
