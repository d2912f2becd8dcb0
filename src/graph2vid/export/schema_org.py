"""schema.org: a VideoObject with a Clip per segment, for ``<script type="application/ld+json">`` in a page."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from graph2vid.export.shared import file_name, format_named, one_line, seconds, timed, titles
from graph2vid.grounding import Exported, Film, Grounding, is_url


@format_named("schema-org", ".video.jsonld", "video")
def export_schema_org(grounding: Grounding, film: Film) -> Exported:
    """Write the video with its clips (hasPart); the URL of a clip is that of the video with the time, ``t=SECONDS``."""
    segments, notes = timed(grounding)
    flow = grounding.flow
    names = titles(flow)
    video: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "VideoObject",
        "name": one_line(flow.title) or "Video",
        "description": "; ".join(names[step] for step in grounding.order) or one_line(flow.title) or "Video",
        "duration": f"PT{seconds(max(round(grounding.end * 1000), 0))}S",
    }
    url = film.name if is_url(film.name) else quote(file_name(film.name))
    if url:
        video["contentUrl"] = url
    if not is_url(film.name):
        notes.append(
            f"no URL of the video is known: the clips have relative ones ({url}?t=…); name it with --video URL"
        )
    video["hasPart"] = [
        {
            "@type": "Clip",
            "name": names[segment.step],
            "startOffset": segment.start / 1000,
            "endOffset": segment.end / 1000,
            "url": _at(url, segment.start // 1000),
        }
        for segment in segments
    ]
    notes.append("search engines want a thumbnailUrl and an uploadDate of the video, too: add them")
    # So that a title cannot end the script element that this is put into.
    text = json.dumps(video, indent=2, ensure_ascii=False).replace("<", "\\u003c")
    return Exported(text + "\n", tuple(notes))


def _at(url: str, second: int) -> str:
    """Return the URL with the time in its query."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "t"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("t", str(second))]), fragment=""))
