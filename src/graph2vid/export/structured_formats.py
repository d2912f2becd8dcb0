"""Formats with a structure: graph2vid's own JSON, schema.org, VIA 3, Label Studio and CVAT."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from xml.sax.saxutils import escape, quoteattr

from graph2vid.errors import Graph2VidError
from graph2vid.export import shared
from graph2vid.flow import colour_of
from graph2vid.grounding import Exported, Film, Grounding, file_name, is_url


@shared.format_named("json", ".grounding.json", "video")
def export_json(grounding: Grounding, film: Film) -> Exported:
    """Write the result file that ``graph2vid ground -o`` writes; nothing is lost."""
    document = grounding.to_json()
    if film.name:  # in full, since nobody knows yet where the file will lie
        document["video"] = film.name if is_url(film.name) else str(Path(film.name).resolve())
    return Exported(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


# -- schema.org ------------------------------------------------------------------------------------------------


@shared.format_named("schema-org", ".video.jsonld", "video")
def export_schema_org(grounding: Grounding, film: Film) -> Exported:
    """Write a VideoObject with its clips (hasPart), for ``<script type="application/ld+json">`` in a page.

    The URL of a clip is that of the video with the time, ``t=SECONDS``.
    """
    video, notes = _video_object(grounding, film)
    return _json_ld({"@context": "https://schema.org", **video}, notes)


@shared.format_named("howto", ".howto.jsonld", "video")
def export_how_to(grounding: Grounding, film: Film) -> Exported:
    """Write a HowTo: its steps in the order of the procedure, each with the clip of the video that shows it."""
    return _procedure(grounding, film, "HowTo", "step")


@shared.format_named("recipe", ".recipe.jsonld", "video")
def export_recipe(grounding: Grounding, film: Film) -> Exported:
    """Write a Recipe, whose instructions are steps with clips of the video."""
    return _procedure(grounding, film, "Recipe", "recipeInstructions")


def _procedure(grounding: Grounding, film: Film, kind: str, steps_are: str) -> Exported:
    from graph2vid.text import short_titles

    video, notes = _video_object(grounding, film)
    clips: dict[int, dict[str, Any]] = {}
    for segment, clip in zip(shared.timed(grounding)[0], video["hasPart"], strict=True):
        clips.setdefault(segment.step, clip)  # the first time that it is shown
    texts = shared.titles(grounding.flow)
    steps = []
    for at, (name, text) in enumerate(zip(short_titles(texts), texts, strict=True)):
        shown = {"url": clips[at]["url"], "video": clips[at]} if at in clips else {}
        shown |= {"image": film.images[at]} if at in film.images else {}
        steps.append({"@type": "HowToStep", "position": at + 1, "name": name, "text": text, **shown})
    if kind == "Recipe":
        notes.append("search engines want an image and the ingredients (recipeIngredient) of a recipe, too: add them")
    picture = {"image": film.images[max(film.images)]} if film.images else {}  # of the last step: what was made
    document = {"@context": "https://schema.org", "@type": kind, "name": video["name"], **picture, "video": video}
    return _json_ld({**document, steps_are: steps}, notes)


def _video_object(grounding: Grounding, film: Film) -> tuple[dict[str, Any], list[str]]:
    """Return the video with a clip per segment, and notes."""
    segments, notes = shared.timed(grounding)
    title, names = shared.one_line(grounding.flow.title) or "Video", shared.titles(grounding.flow)
    url = film.name if is_url(film.name) else quote(file_name(film.name), errors="surrogateescape")
    if not is_url(film.name):
        notes.append(
            f"no URL of the video is known: the clips have relative ones ({url}?t=…); name it with --video URL"
        )
    clips = [
        {
            "@type": "Clip",
            "name": names[segment.step],
            "startOffset": segment.start / 1000,
            "endOffset": segment.end / 1000,
            "url": _at(url, segment.start // 1000),
        }
        for segment in segments
    ]
    wanted = "an uploadDate" if film.images else "a thumbnailUrl and an uploadDate"
    notes.append(f"search engines want {wanted} of the video, too: add them")
    return {
        "@type": "VideoObject",
        "name": title,
        "description": "; ".join(names[step] for step in grounding.order) or title,
        "duration": f"PT{shared.seconds(max(round(grounding.end * 1000), 0))}S",
        **({"contentUrl": url} if url else {}),
        **({"thumbnailUrl": film.images[max(film.images)]} if film.images else {}),
        "hasPart": clips,
    }, notes


def _json_ld(document: dict[str, Any], notes: list[str]) -> Exported:
    # So that a title cannot end the script element that this is put into.
    text = json.dumps(document, indent=2, ensure_ascii=False).replace("<", "\\u003c")
    return Exported(text + "\n", tuple(notes))


def _at(url: str, second: int) -> str:
    """Return the URL with the time in its query."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "t"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("t", str(second))]), fragment=""))


# -- VIA 3, the VGG image, audio and video annotator -------------------------------------------------------------

_VIDEO, _SELECT = 4, 4
_ROW_COUNTS = (*range(1, 11), 12, 14, 16)  # how many timelines VIA can show; with other numbers it shows none
_LOCAL, _HTTP, _ON_DISK = 1, 2, 3  # where a file is: chosen in the browser, at a URL, at a path


@shared.format_named("via3", ".via3.json", "video")
def export_via3(grounding: Grounding, film: Film) -> Exported:
    """Write a project with one video, an attribute "step" with the steps as options, and a segment each."""
    segments, notes = shared.timed(grounding)
    flow = grounding.flow
    # Of a file a URL, too, for the browser opens it.
    place, source = (_HTTP, film.name) if is_url(film.name) else (_ON_DISK, Path(film.name).resolve().as_uri())
    if not film.name:
        place, source = _LOCAL, ""
        notes.append("the video is not known: choose it in VIA, or name it with --video")
    name = file_name(film.name) or "video"
    rows = next((count for count in _ROW_COUNTS if count >= len(flow)), _ROW_COUNTS[-1])
    project: dict[str, Any] = {
        "project": {
            "pid": "__VIA_PROJECT_ID__",
            "rev": "__VIA_PROJECT_REV_ID__",
            "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
            "pname": shared.one_line(flow.title) or name,
            "creator": f"graph2vid {grounding.version}",
            "created": 0,
            "data_format_version": "3.1.1",
            "vid_list": ["1"],
        },
        "config": {
            "file": {"loc_prefix": {"1": "", "2": "", "3": "", "4": ""}},
            "ui": {
                "file_content_align": "center",
                "file_metadata_editor_visible": True,
                "spatial_metadata_editor_visible": False,
                "temporal_segment_metadata_editor_visible": True,
                "spatial_region_label_attribute_id": "",
                "gtimeline_visible_row_count": str(rows),
            },
        },
        "attribute": {
            "1": {
                "aname": "step",
                "anchor_id": "FILE1_Z2_XY0",
                "type": _SELECT,
                "desc": "The step that this stretch of the video shows",
                "options": {str(step): label for step, label in enumerate(shared.labels(flow), start=1)},
                "default_option_id": "",
            }
        },
        "file": {"1": {"fid": "1", "fname": name, "type": _VIDEO, "loc": place, "src": source}},
        "view": {"1": {"fid_list": ["1"]}},
        "metadata": {
            f"1_segment{number}": {
                "vid": "1",
                "flg": 0,
                "z": [segment.start / 1000, segment.end / 1000],
                "xy": [],
                "av": {"1": str(segment.step + 1)},
            }
            for number, segment in enumerate(segments, start=1)
        },
    }
    return Exported(json.dumps(project, ensure_ascii=False) + "\n", tuple(notes))


# -- Label Studio ------------------------------------------------------------------------------------------------
# It counts frames of a fixed rate, from 1. The configuration takes the rate from the task (``$fps``).

_CONTROL, _OBJECT = "steps", "video"
_USUAL_RATE = 25.0


@shared.format_named("label-studio", ".label-studio.json", "video", "frame_rate")
def export_label_studio(grounding: Grounding, film: Film) -> Exported:
    """Write one task, to be imported, with a timeline region (frames) per segment as a prediction."""
    segments, notes = shared.timed(grounding)
    names = shared.labels(grounding.flow)
    rate, from_where = _frame_rate(film)
    notes += from_where
    regions: list[dict[str, Any]] = []
    for number, segment in enumerate(segments, start=1):
        first = round(segment.start / 1000 * rate) + 1
        last = max(round(segment.end / 1000 * rate), first)
        region: dict[str, Any] = {
            "id": f"segment{number}",
            "from_name": _CONTROL,
            "to_name": _OBJECT,
            "type": "timelinelabels",
            "value": {"ranges": [{"start": first, "end": last}], "timelinelabels": [names[segment.step]]},
        }
        if segment.why:
            region["meta"] = {"text": [f"doubtful: {segment.why}"]}
        regions.append(region if segment.confidence is None else region | {"score": round(segment.confidence, 4)})
    if not film.name:
        notes.append("the video is not known: put its URL into data.video, or name it with --video URL")
    elif not is_url(film.name):
        notes.append("Label Studio plays a video that it reaches by a URL, not by a path: name it with --video URL")
    prediction: dict[str, Any] = {"model_version": f"graph2vid {grounding.version}", "result": regions}
    if sure := [region["score"] for region in regions if "score" in region]:
        prediction["score"] = min(sure)
    data = {"video": film.name, "fps": rate, "title": shared.one_line(grounding.flow.title)}
    notes.append("the labels and colours are set up by the format label-studio-config")
    tasks = json.dumps([{"data": data, "predictions": [prediction]}], indent=2, ensure_ascii=False)
    return Exported(tasks + "\n", tuple(notes))


@shared.format_named("label-studio-config", ".label-studio.xml")
def export_configuration(grounding: Grounding, film: Film) -> Exported:
    """Write the labelling configuration: the steps as labels, in their colours."""
    labels = "".join(
        f'    <Label value={quoteattr(name)} background="{colour_of(step)}"/>\n'
        for step, name in enumerate(shared.labels(grounding.flow))
    )
    return Exported(
        f'<View>\n  <Video name="{_OBJECT}" value="$video" frameRate="$fps"/>\n'
        f'  <TimelineLabels name="{_CONTROL}" toName="{_OBJECT}">\n{labels}  </TimelineLabels>\n</View>\n'
    )


# -- CVAT ----------------------------------------------------------------------------------------------------------
# "CVAT for video 1.1": its tracks are shapes, so a segment is a rectangle as large as the frame, from its first frame
# on, which is outside from the frame after its last on. Frames are counted from 0. Labels are made with the task.

_USUAL_SIZE = 1920, 1080


@shared.format_named("cvat", ".cvat.xml", "video", "frame_rate")
def export_cvat(grounding: Grounding, film: Film) -> Exported:
    """Write the annotations of a video task: a track per segment, a rectangle around the whole frame."""
    segments, notes = shared.timed(grounding)
    names = shared.labels(grounding.flow)
    rate, from_where = _frame_rate(film)
    notes += from_where
    (width, height), from_where = _frame_size(film)
    notes += from_where
    size = max(round(grounding.end * rate), 1)
    frames = [(min(round(one.start / 1000 * rate), size - 1), round(one.end / 1000 * rate)) for one in segments]
    labels = "".join(
        f"        <label><name>{escape(name)}</name><color>{colour_of(step)}</color><attributes></attributes></label>\n"
        for step, name in enumerate(names)
    )
    tracks = "".join(
        f'  <track id="{number}" label={quoteattr(names[one.step])} source="auto">\n'
        + _cvat_box(first, width, height, outside=False)
        + (_cvat_box(max(last, first + 1), width, height, outside=True) if max(last, first + 1) < size else "")
        + "  </track>\n"
        for number, (one, (first, last)) in enumerate(zip(segments, frames, strict=True))
    )
    task = (
        f"    <task>\n      <name>{escape(file_name(film.name) or shared.one_line(grounding.flow.title))}</name>\n"
        f"      <size>{size}</size>\n      <mode>interpolation</mode>\n"
        f"      <start_frame>0</start_frame>\n      <stop_frame>{size - 1}</stop_frame>\n      <labels>\n{labels}"
        f"      </labels>\n      <original_size><width>{width}</width><height>{height}</height></original_size>\n"
        "    </task>\n"
    )
    notes.append("make the task with the labels of cvat-labels, then upload these annotations as CVAT 1.1")
    head = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
    return Exported(f"{head}  <meta>\n{task}  </meta>\n{tracks}</annotations>\n", tuple(notes))


@shared.format_named("cvat-labels", ".cvat-labels.json")
def export_cvat_labels(grounding: Grounding, film: Film) -> Exported:
    """Write the labels, for "Raw" of CVAT's constructor of tasks: the steps as rectangles, in their colours."""
    labels = [
        {"name": name, "color": colour_of(step), "type": "rectangle", "attributes": []}
        for step, name in enumerate(shared.labels(grounding.flow))
    ]
    return Exported(json.dumps(labels, indent=2, ensure_ascii=False) + "\n")


def _cvat_box(frame: int, width: int, height: int, *, outside: bool) -> str:
    return (
        f'    <box frame="{frame}" keyframe="1" outside="{int(outside)}" occluded="0" xtl="0.00" ytl="0.00" '
        f'xbr="{width}.00" ybr="{height}.00" z_order="0"></box>\n'
    )


def _frame_size(film: Film) -> tuple[tuple[int, int], list[str]]:
    """Return width and height of the frames: of the file, or the usual; and a note where they are assumed."""
    if film.name and Path(film.name).is_file():
        from graph2vid.evidence import probe

        with suppress(Graph2VidError):
            info = probe(film.name)
            if info.width:
                return (info.width, info.height), []
    assumed = "frames of {} × {} pixels are assumed: name the video file with --video".format(*_USUAL_SIZE)
    return _USUAL_SIZE, [assumed]


def _frame_rate(film: Film) -> tuple[float, list[str]]:
    """Return frames per second: as given, of the file, or the usual; and a note where it is not as given."""
    if film.frame_rate is not None:
        return film.frame_rate, []
    if film.name and Path(film.name).is_file():
        from graph2vid.evidence import probe

        try:
            info = probe(film.name)
        except Graph2VidError as error:
            return _USUAL_RATE, [f"{_USUAL_RATE:g} frames per second are assumed ({error})"]
        if info.frame_rate > 0:
            varies = " on average: they vary, so frames are not exact" if info.variable_rate else ""
            return round(info.frame_rate, 6), [f"{info.frame_rate:g} frames per second{varies}"]
    return _USUAL_RATE, [f"{_USUAL_RATE:g} frames per second are assumed: name the true rate with --frame-rate"]
