"""VIA 3, the VGG image, audio and video annotator: a project with the segments in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graph2vid.export.shared import file_name, format_named, labels, one_line, timed
from graph2vid.grounding import Exported, Film, Grounding, is_url

_VIDEO, _SELECT = 4, 4
_ROW_COUNTS = (*range(1, 11), 12, 14, 16)  # how many timelines VIA can show; with other numbers it shows none
_LOCAL, _HTTP, _ON_DISK = 1, 2, 3  # where a file is: chosen in the browser, at a URL, at a path


@format_named("via3", ".via3.json", "video")
def export_via3(grounding: Grounding, film: Film) -> Exported:
    """Write a project with one video, an attribute "step" with the steps as options, and a segment each."""
    segments, notes = timed(grounding)
    flow = grounding.flow
    if not film.name:
        notes.append("the video is not known: choose it in VIA, or name it with --video")
    place, source = _source(film.name)
    name = file_name(film.name) or "video"
    rows = next((count for count in _ROW_COUNTS if count >= len(flow)), _ROW_COUNTS[-1])
    project: dict[str, Any] = {
        "project": {
            "pid": "__VIA_PROJECT_ID__",
            "rev": "__VIA_PROJECT_REV_ID__",
            "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
            "pname": one_line(flow.title) or name,
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
                "options": {str(step): label for step, label in enumerate(labels(flow), start=1)},
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


def _source(video: str) -> tuple[int, str]:
    """Return where the video is, and its address; of a file a URL, for the browser opens it."""
    if not video:
        return _LOCAL, ""
    return (_HTTP, video) if is_url(video) else (_ON_DISK, Path(video).resolve().as_uri())
