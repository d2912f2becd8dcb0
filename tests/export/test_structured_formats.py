"""JSON-LD, Label Studio, VIA 3 and ELAN: the documented structure, and what the tools' own readers see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from films import film
from found import AWKWARD, groundings, make_grounding
from graph2vid.export import export, write_export
from graph2vid.export.elan import read_elan
from graph2vid.export.shared import labels, timed, titles
from graph2vid.flow.colours import colour_of
from graph2vid.grounding import Grounding

URL = "https://www.youtube.com/watch?v=abc&t=99"


def spans(grounding: Grounding) -> list[tuple[float, float]]:
    return [(segment.start / 1000, segment.end / 1000) for segment in timed(grounding)[0]]


@given(groundings())
@settings(max_examples=40, deadline=None)
def test_schema_org_is_a_video_object_with_clips(grounding: Grounding) -> None:
    exported = export(grounding, "schema-org", video=URL)
    video = json.loads(exported.text)
    assert video["@context"] == "https://schema.org" and video["@type"] == "VideoObject"
    assert video["name"] and video["description"] and video["contentUrl"] == URL
    assert video["duration"].startswith("PT") and float(video["duration"][2:-1]) == pytest.approx(
        max(grounding.end, 0), abs=1e-3
    )
    assert [(clip["startOffset"], clip["endOffset"]) for clip in video["hasPart"]] == spans(grounding)
    names = titles(grounding.flow)
    for clip, segment in zip(video["hasPart"], timed(grounding)[0], strict=True):
        assert set(clip) == {"@type", "name", "startOffset", "endOffset", "url"} and clip["@type"] == "Clip"
        assert clip["name"] == names[segment.step]
        query = parse_qs(urlsplit(clip["url"]).query)
        assert query == {"v": ["abc"], "t": [str(segment.start // 1000)]}
    assert "<" not in exported.text  # it cannot end the element that it is put into


@pytest.mark.parametrize(("video", "url"), [("a folder/my film.mp4", "my%20film.mp4?t=2"), (None, "?t=2")])
def test_schema_org_without_a_url_has_relative_ones_and_says_so(video: str | None, url: str) -> None:
    exported = export(make_grounding([-1, -1, 0]), "schema-org", video=video)
    assert json.loads(exported.text)["hasPart"][0]["url"] == url and "--video URL" in exported.notes[0]


@given(groundings())
@settings(max_examples=40, deadline=None)
def test_label_studio_tasks_fit_their_configuration(grounding: Grounding) -> None:
    (task,) = json.loads(export(grounding, "label-studio", frame_rate=29.97).text)
    view = ElementTree.fromstring(export(grounding, "label-studio-config").text)
    video, control = view.find("Video"), view.find("TimelineLabels")
    assert video is not None and control is not None and view.tag == "View"
    for attribute in ("value", "frameRate"):
        assert video.attrib[attribute].removeprefix("$") in task["data"]
    assert task["data"]["fps"] == 29.97 and control.attrib["toName"] == video.attrib["name"]
    choices = [label.attrib["value"] for label in control]
    assert len(set(choices)) == len(choices) == len(grounding.flow)
    assert [label.attrib["background"] for label in control] == list(map(colour_of, range(len(choices))))
    (prediction,) = task["predictions"]
    last = 0
    segments = timed(grounding)[0]
    assert len(prediction["result"]) == len(segments)
    for region, segment in zip(prediction["result"], segments, strict=True):
        assert (region["from_name"], region["to_name"]) == (control.attrib["name"], video.attrib["name"])
        assert region["type"] == "timelinelabels"
        assert region["value"]["timelinelabels"] == [choices[segment.step]]
        (frames,) = region["value"]["ranges"]
        assert isinstance(frames["start"], int) and isinstance(frames["end"], int)
        assert max(last, 1) <= frames["start"] <= frames["end"]  # counted from 1, both ends inside
        assert abs((frames["start"] - 1) / 29.97 - segment.start / 1000) <= 0.5 / 29.97 + 1e-9
        last = frames["end"]
    assert len({region["id"] for region in prediction["result"]}) == len(segments)


def test_adjoining_segments_share_no_frame() -> None:
    (task,) = json.loads(export(make_grounding([0, 0, 1]), "label-studio", frame_rate=30).text)
    ranges = [region["value"]["ranges"][0] for region in task["predictions"][0]["result"]]
    assert ranges == [{"start": 1, "end": 60}, {"start": 61, "end": 90}]


def test_the_frame_rate_is_that_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("av")
    path = film(tmp_path / "a.mp4", [at / 10 for at in range(21)])
    exported = export(make_grounding([0, 1]), "label-studio", video=str(path))
    assert json.loads(exported.text)[0]["data"]["fps"] == pytest.approx(10) and "10 frames" in exported.notes[0]
    (tmp_path / "b.mp4").write_bytes(b"no film")
    exported = export(make_grounding([0, 1]), "label-studio", video=str(tmp_path / "b.mp4"))
    assert json.loads(exported.text)[0]["data"]["fps"] == 25 and "assumed" in exported.notes[0]


@given(groundings())
@settings(max_examples=40, deadline=None)
def test_via3_projects_hang_together(grounding: Grounding) -> None:
    project: dict[str, Any] = json.loads(export(grounding, "via3").text)
    assert set(project) == {"project", "config", "attribute", "file", "view", "metadata"}
    assert project["project"]["data_format_version"] == "3.1.1"
    assert project["project"]["vid_list"] == list(project["view"])
    assert all(fid in project["file"] for view in project["view"].values() for fid in view["fid_list"])
    (file,) = project["file"].values()
    kinds = {None: 1, "some where/my film.mp4": 3, "https://example.org/watch?v=1&t=9#x": 2}
    assert file["type"] == 4 and file["loc"] == kinds[grounding.video]
    attribute = project["attribute"]["1"]
    assert attribute["anchor_id"] == "FILE1_Z2_XY0" and attribute["type"] == 4
    assert list(attribute["options"].values()) == labels(grounding.flow)
    entries = list(project["metadata"].values())
    assert [tuple(entry["z"]) for entry in entries] == spans(grounding)
    for entry, segment in zip(entries, timed(grounding)[0], strict=True):
        assert entry["vid"] in project["view"] and entry["xy"] == [] and entry["flg"] == 0
        assert attribute["options"][entry["av"]["1"]] == labels(grounding.flow)[segment.step]


@pytest.mark.parametrize(("steps", "rows"), [(1, "1"), (10, "10"), (11, "12"), (13, "14"), (30, "16")])
def test_via3_is_told_a_number_of_timelines_that_it_has(steps: int, rows: str) -> None:
    project = json.loads(export(make_grounding([0], [f"step {n}" for n in range(steps)]), "via3").text)
    assert project["config"]["ui"]["gtimeline_visible_row_count"] == rows


def test_via3_opens_files_and_pages(tmp_path: Path) -> None:
    def source(video: str | None) -> str:
        return str(json.loads(export(make_grounding([0]), "via3", video=video).text)["file"]["1"]["src"])

    assert source(str(tmp_path / "a #1.mp4")) == (tmp_path / "a #1.mp4").as_uri() and "#" not in source("a #1.mp4")
    assert source(URL) == URL and source(None) == ""


def test_label_studio_accepts_task_and_configuration() -> None:
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    grounding = make_grounding([step for step in range(len(AWKWARD)) for _ in range(2)], AWKWARD)
    (task,) = json.loads(export(grounding, "label-studio", video=URL).text)
    interface = sdk.LabelInterface(export(grounding, "label-studio-config").text)
    interface.validate()
    assert interface.validate_task({"data": task["data"]})
    (prediction,) = task["predictions"]
    assert interface.validate_prediction(prediction, return_errors=True) == []
    assert len(prediction["result"]) == len(AWKWARD) and all(map(interface.validate_region, prediction["result"]))


@given(groundings())
@settings(max_examples=30, deadline=None)
def test_elan_is_read_back_by_pympi(tmp_path_factory: pytest.TempPathFactory, grounding: Grounding) -> None:
    pympi = pytest.importorskip("pympi")
    path = tmp_path_factory.mktemp("elan") / "a.eaf"
    write_export(path, grounding, "elan")
    eaf = pympi.Elan.Eaf(str(path))
    names = labels(grounding.flow)
    segments = timed(grounding)[0]
    assert [annotation[:3] for annotation in eaf.get_annotation_data_for_tier("steps")] == [
        (s.start, s.end, names[s.step]) for s in segments
    ]
    assert [entry[0][0][0] for entry in eaf.get_cv_entries("steps").values()] == names
    kind = eaf.get_parameters_for_linguistic_type("steps")
    assert kind["CONTROLLED_VOCABULARY_REF"] == "steps" and "default" not in eaf.get_tier_names()
    if segments and segments[0].confidence is not None:
        (values,) = {value for _, _, value, _ in eaf.get_ref_annotation_data_for_tier("confidence")}
        assert values == f"{segments[0].confidence:.2f}"
    else:
        assert list(eaf.get_tier_names()) == ["steps"]
    assert len(eaf.get_linked_files()) == (grounding.video is not None)
    assert read_elan(path) == [(names[s.step], s.start / 1000, s.end / 1000) for s in segments]


def test_elan_links_the_video_where_it_is_and_beside(tmp_path: Path) -> None:
    pytest.importorskip("pympi")
    root = ElementTree.fromstring(export(make_grounding([0]), "elan", video=str(tmp_path / "ä b.mp4")).text.encode())
    media = root.find("HEADER/MEDIA_DESCRIPTOR")
    assert media is not None and media.attrib["MIME_TYPE"] == "video/mp4"
    assert media.attrib["MEDIA_URL"] == (tmp_path / "ä b.mp4").as_uri()
    assert media.attrib["RELATIVE_MEDIA_URL"] == "./ä b.mp4"


def test_labels_differ_for_every_step() -> None:
    assert labels(make_grounding([0], [("1", "cut"), ("2", "cut"), ("3", "mix")]).flow) == ["1: cut", "2: cut", "mix"]
    assert labels(make_grounding([0], [("1", "2"), ("2", "x")]).flow) == ["1: 2", "x"]
    assert labels(make_grounding([0], [("a", "a b: c"), ("a b", "c"), ("a  b", "c")]).flow)[1:] == [
        "#2 a b: c",
        "#3 a b: c",
    ]
    assert len(set(labels(make_grounding([0], AWKWARD).flow))) == len(AWKWARD)


@given(groundings())
@settings(max_examples=40, deadline=None)
def test_cvat_tracks_are_read_back(grounding: Grounding) -> None:
    """As CVAT's loader does: a track begins with its first box and ends before the one that is outside."""
    root = ElementTree.fromstring(export(grounding, "cvat", frame_rate=25).text.encode())
    assert root.findtext("version") == "1.1" and root.findtext("meta/task/mode") == "interpolation"
    size = int(root.findtext("meta/task/size") or 0)
    known = [label["name"] for label in json.loads(export(grounding, "cvat-labels").text)]
    assert [label.findtext("name") for label in root.iterfind("meta/task/labels/label")] == known
    assert len({*known}) == len(known)
    segments = timed(grounding)[0]
    tracks = root.findall("track")
    assert [track.attrib["label"] for track in tracks] == [labels(grounding.flow)[one.step] for one in segments]
    for number, (track, one) in enumerate(zip(tracks, segments, strict=True)):
        assert track.attrib["id"] == str(number)
        first, *last = track.findall("box")
        assert first.attrib["outside"] == "0" and first.attrib["keyframe"] == "1"
        begins = int(first.attrib["frame"])
        assert 0 <= begins < size and begins == pytest.approx(min(one.start / 40, size - 1), abs=1)
        if last:
            assert last[0].attrib["outside"] == "1" and begins < int(last[0].attrib["frame"]) < size
            assert int(last[0].attrib["frame"]) == pytest.approx(one.end / 40, abs=1.5)
        else:
            assert one.end / 40 >= size - 1.5
        assert float(first.attrib["xbr"]) == 1920 and float(first.attrib["ybr"]) == 1080


def test_cvat_takes_the_size_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("av")
    path = film(tmp_path / "a.mp4", [at / 10 for at in range(21)])
    exported = export(make_grounding([0, 1]), "cvat", video=str(path))
    (box, *_) = ElementTree.fromstring(exported.text.encode()).iter("box")
    assert (box.attrib["xbr"], box.attrib["ybr"]) == ("48.00", "32.00") and not any(
        "assumed" in n for n in exported.notes
    )
