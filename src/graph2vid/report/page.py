"""A grounding as one HTML page that needs nothing but itself, and the video beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import mimetypes
import os
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from graph2vid._files import read_bytes, write_text
from graph2vid.errors import InputError
from graph2vid.grounding import Grounding, OrderCheck, format_time, is_url
from graph2vid.report.document import Spans, view_model

STATIC = Path(__file__).parent / "static"
"""The folder of scripts and style that report and studio share."""

_MOST_EMBEDDED = 200 << 20  # bytes
_WEB = re.compile(r"(https?://[\w.:\[\]-]+|file://)(/|$)", re.ASCII)  # nothing that could slip into the policy
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+\.js)";\n', re.MULTILINE)


def write_report(
    path: str | os.PathLike[str],
    grounding: Grounding,
    *,
    compare: Mapping[str, Grounding | Spans] | None = None,
    check: OrderCheck | None = None,
    embed_video: bool = False,
) -> None:
    """Write the page of a grounding, whole or not at all.

    Parameters
    ----------
    path : path
        The video is linked from here: by its name if it lies in this folder or below, so that both can be moved
        together.
    grounding : Grounding
    compare, check
        What to set beside it, and what a check of the order found; see :func:`graph2vid.report.view_model`.
    embed_video : bool
        Put the video into the page. It must be a file that can be decoded as a video or as sound; of a result that
        somebody else made, see :func:`refuse_video_outside` first.
    """
    folder = Path(path).resolve().parent
    write_text(path, page(grounding, compare=compare, check=check, embed_video=embed_video, folder=folder))


def page(
    grounding: Grounding,
    *,
    compare: Mapping[str, Grounding | Spans] | None = None,
    check: OrderCheck | None = None,
    embed_video: bool = False,
    folder: Path | None = None,
) -> str:
    """Return the page as HTML; ``folder`` is where it will lie, the rest is as for :func:`write_report`."""
    embedded = _embedded(grounding.video) if embed_video else None
    url = "" if embedded is not None else _url(grounding.video, folder)
    model = view_model(grounding, compare=compare, check=check, video_url=url)
    title = escape(grounding.flow.title or "When each step happens")
    style, script = (STATIC / "view.css").read_text("utf-8"), _script()
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script, url)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>{style}</style></head>",
        f'<body><main id="view"></main><noscript>{_plain(grounding)}</noscript>',
        f'<footer class="made">Made by graph2vid {escape(grounding.version)}</footer>',
        f'<script type="application/json" id="result">{_inert(model)}</script>',
        embedded or "",
        f'<script type="module">{script}</script>',
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _inert(model: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in, whatever users wrote."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _script() -> str:
    """Return the modules of the report as one, each after those that it imports."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        text = (STATIC / name).read_text("utf-8")
        done[name] = ""  # in work
        for needed in _IMPORT.findall(text):
            if needed not in done:
                add(needed)
        del done[name]
        done[name] = _EXPORT.sub("", _IMPORT.sub("", text))

    add("report.js")
    return "\n".join(done.values())


def _policy(style: str, script: str, url: str | None) -> str:
    """Return what the page may load: its own style and script, and the video."""
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    media = "'self' blob: file:"
    if url and is_url(url) and not url.startswith("file:"):
        media += f" {urlsplit(url).scheme}://{urlsplit(url).netloc}"
    return (
        f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; media-src {media}; "
        "base-uri 'none'; form-action 'none'"
    )


def _url(video: str | None, folder: Path | None) -> str | None:
    """Return how a page in ``folder`` links to the video."""
    if video is None or is_url(video):
        return video if video and _WEB.match(video) else None
    path = Path(video).resolve()
    if folder is not None and path.is_relative_to(folder):
        return quote(path.relative_to(folder).as_posix(), errors="surrogateescape")
    return path.as_uri()


def _embedded(video: str | None) -> str:
    """Return the element that holds the video itself."""
    if video is None:
        raise InputError("there is no video to embed: the result names none (--video does)")
    if is_url(video):
        raise InputError(f"only a file can be embedded, not {video}: download it, or link it")
    size = Path(video).stat().st_size if Path(video).is_file() else 0
    if size > _MOST_EMBEDDED:
        limit = f"up to {_MOST_EMBEDDED >> 20} MiB are embedded: link it instead"
        raise InputError(f"{video} has {size / 2**20:,.0f} MiB; {limit}")
    from graph2vid.evidence import probe

    probe(video)  # an error if it is anything but media: no other file of this machine goes into a page
    kind = mimetypes.guess_type(video)[0] or "video/mp4"
    data = base64.b64encode(read_bytes(video)).decode("ascii")
    return f'<script type="application/octet-stream" id="video" data-kind="{escape(kind)}">{data}</script>'


def refuse_video_outside(grounding: Grounding, folder: Path) -> None:
    """Refuse to embed a video that a result names and that does not lie in the folder of the result, or below.

    Results are handed around: one that names another file of the reader's must not put that into a page.
    """
    video = grounding.video
    if video is not None and not is_url(video) and not Path(video).resolve().is_relative_to(folder.resolve()):
        advice = "which is not embedded unasked: name it with --video"
        raise InputError(f"the result names a video outside of its folder ({video}), {advice}")


def _plain(grounding: Grounding) -> str:
    """Return the times as a plain table, for readers without scripts."""
    rows = "".join(
        f"<tr><td>{part.step + 1}</td><td>{format_time(part.start)}–{format_time(part.end)}</td>"
        f"<td>{escape(part.text or part.id)}</td></tr>"
        for part in grounding.segments
    )
    return f"<h1>{escape(grounding.flow.title)}</h1><table>{rows}</table>"
