"""Label Studio: a task with the segments as predictions, and the labelling configuration that goes with it.

Label Studio counts frames of a fixed rate, from 1. The configuration takes the rate from the task (``$fps``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from graph2vid.export.shared import format_named, labels, one_line, timed
from graph2vid.flow import colour_of
from graph2vid.grounding import Exported, Film, Grounding, is_url

_CONTROL, _OBJECT = "steps", "video"
_USUAL_RATE = 25.0


@format_named("label-studio", ".label-studio.json", "video", "frame_rate")
def export_label_studio(grounding: Grounding, film: Film) -> Exported:
    """Write one task, to be imported, with a timeline region (frames) per segment as a prediction."""
    segments, notes = timed(grounding)
    names = labels(grounding.flow)
    rate, from_where = _frame_rate(film)
    notes += from_where
    regions: list[dict[str, Any]] = []
    for number, segment in enumerate(segments, start=1):
        first = round(segment.start / 1000 * rate) + 1
        last = max(round(segment.end / 1000 * rate), first)
        region = {
            "id": f"segment{number}",
            "from_name": _CONTROL,
            "to_name": _OBJECT,
            "type": "timelinelabels",
            "value": {"ranges": [{"start": first, "end": last}], "timelinelabels": [names[segment.step]]},
        }
        regions.append(region if segment.confidence is None else region | {"score": round(segment.confidence, 4)})
    if not film.name:
        notes.append("the video is not known: put its URL into data.video, or name it with --video URL")
    elif not is_url(film.name):
        notes.append("Label Studio plays a video that it reaches by a URL, not by a path: name it with --video URL")
    prediction: dict[str, Any] = {"model_version": f"graph2vid {grounding.version}", "result": regions}
    sure = [segment.confidence for segment in segments if segment.confidence is not None]
    if sure:
        prediction["score"] = round(min(sure), 4)
    data = {"video": film.name, "fps": rate, "title": one_line(grounding.flow.title)}
    task = {"data": data, "predictions": [prediction]}
    notes.append("the labels and colours are set up by the format label-studio-config")
    return Exported(json.dumps([task], indent=2, ensure_ascii=False) + "\n", tuple(notes))


@format_named("label-studio-config", ".label-studio.xml")
def export_configuration(grounding: Grounding, film: Film) -> Exported:
    """Write the labelling configuration: the steps as labels, in their colours."""
    lines = [
        "<View>",
        f'  <Video name="{_OBJECT}" value="$video" frameRate="$fps"/>',
        f'  <TimelineLabels name="{_CONTROL}" toName="{_OBJECT}">',
        *(
            f'    <Label value={quoteattr(name)} background="{colour_of(step)}"/>'
            for step, name in enumerate(labels(grounding.flow))
        ),
        "  </TimelineLabels>",
        "</View>",
    ]
    return Exported("\n".join(lines) + "\n")


def _frame_rate(film: Film) -> tuple[float, list[str]]:
    """Return frames per second: as given, of the file, or the usual; and a note where it is not as given."""
    if film.frame_rate is not None:
        return film.frame_rate, []
    if film.name and Path(film.name).is_file():
        from graph2vid.errors import Graph2VidError
        from graph2vid.evidence import probe

        try:
            info = probe(film.name)
        except Graph2VidError as error:
            return _USUAL_RATE, [f"{_USUAL_RATE:g} frames per second are assumed ({error})"]
        if info.frame_rate > 0:
            varies = " on average: they vary, so frames are not exact" if info.variable_rate else ""
            return round(info.frame_rate, 6), [f"{info.frame_rate:g} frames per second{varies}"]
    return _USUAL_RATE, [f"{_USUAL_RATE:g} frames per second are assumed: name the true rate with --frame-rate"]
