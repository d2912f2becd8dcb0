"""HowTo and Recipe as search engines read them, labels for Create ML and LeRobot: what was found comes back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from found import groundings, make_grounding
from graph2vid.export import export, write_export
from graph2vid.export.shared import labels, timed, titles
from graph2vid.grounding import Grounding
from graph2vid.text import read_procedure

URL = "https://example.org/watch?v=1"

# The properties that schema.org lists for these types (their own and those of HowTo, CreativeWork and Thing), as far
# as they are used here, and the types that it expects of their values.
TYPES: dict[str, dict[str, tuple[Any, ...]]] = {
    "HowTo": {"name": (str,), "image": (str,), "video": ("VideoObject",), "step": ("HowToStep",)},
    "Recipe": {"name": (str,), "image": (str,), "video": ("VideoObject",), "recipeInstructions": ("HowToStep",)},
    "HowToStep": {
        "position": (int,),
        "name": (str,),
        "text": (str,),
        "url": (str,),
        "image": (str,),
        "video": ("Clip",),
    },
    "Clip": {"name": (str,), "startOffset": (int, float), "endOffset": (int, float), "url": (str,)},
    "VideoObject": {
        "name": (str,),
        "description": (str,),
        "duration": (str,),
        "contentUrl": (str,),
        "thumbnailUrl": (str,),
        "hasPart": ("Clip",),
    },
}


def check_types(thing: dict[str, Any]) -> None:
    """Check a thing of schema.org, and those inside of it, against the types of their properties."""
    known = TYPES[thing["@type"]]
    for name, value in thing.items():
        if name.startswith("@"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                assert one["@type"] in known[name]
                check_types(one)
            else:
                assert isinstance(one, tuple(kind for kind in known[name] if isinstance(kind, type))), (name, one)


@pytest.mark.parametrize(
    ("name", "kind", "steps"), [("howto", "HowTo", "step"), ("recipe", "Recipe", "recipeInstructions")]
)
@given(grounding=groundings())
@settings(max_examples=25, deadline=None)
def test_steps_have_the_clips_that_show_them(name: str, kind: str, steps: str, grounding: Grounding) -> None:
    exported = export(grounding, name, video=URL)
    document = json.loads(exported.text)
    assert document["@context"] == "https://schema.org" and document["@type"] == kind and "<" not in exported.text
    check_types(document)
    assert [one["text"] for one in document[steps]] == titles(grounding.flow)
    assert all(len(one["name"]) <= 40 for one in document[steps])
    firsts = {one.step: one.start / 1000 for one in reversed(timed(grounding)[0])}
    shown = {at: one["video"]["startOffset"] for at, one in enumerate(document[steps]) if "video" in one}
    assert shown == firsts


@pytest.mark.parametrize("name", ["howto", "recipe"])
def test_our_own_reader_of_pages_reads_them(name: str, tmp_path: Path) -> None:
    grounding = make_grounding([0, 1, 2], ["Wash the salad.", "Cut it.", "Mix it with the dressing."])
    write_export(tmp_path / "a.json", grounding, name, video=URL)
    found = read_procedure(tmp_path / "a.json")
    assert found.title == "Salad" and found.texts == grounding.flow.texts


@given(groundings())
@settings(max_examples=25, deadline=None)
def test_labels_for_training_come_back(grounding: Grounding) -> None:
    spans = [(one.step, one.start / 1000, one.end / 1000) for one in timed(grounding)[0]]
    entries = json.loads(export(grounding, "createml", video="a b/c.mp4").text)
    named = {label: step for step, label in enumerate(labels(grounding.flow))}
    assert [(named[one["label"]], one["start"], one["end"]) for one in entries] == spans
    assert all(one["video"] == "c.mp4" for one in entries)
    document = json.loads(export(grounding, "lerobot").text)
    (episode,) = document["episodes"].values()
    names = titles(grounding.flow)
    assert [(one["label"], one["start"], one["end"]) for one in episode["subtasks"]] == [
        (names[step], start, end) for step, start, end in spans
    ]


def test_create_ml_is_a_table() -> None:
    """Create ML reads JSON as a table: each entry has the same plain columns."""
    entries = json.loads(export(make_grounding([0, 0, 1], video="v.mp4"), "createml").text)
    table = io.StringIO()
    writer = csv.DictWriter(table, ["video", "label", "start", "end"])
    writer.writeheader()
    writer.writerows(entries)
    assert list(csv.DictReader(io.StringIO(table.getvalue())))[1] == {
        "video": "v.mp4",
        "label": "cut",
        "start": "2.0",
        "end": "3.0",
    }


def test_steps_have_pictures() -> None:
    found = make_grounding([0, 0, 1], video=URL)
    document = json.loads(export(found, "howto", images={0: "a.jpg", 1: "https://example.org/b.jpg"}).text)
    check_types(document)
    pictures = [step.get("image") for step in document["step"]]
    assert pictures == ["a.jpg", "https://example.org/b.jpg", None, None]
    assert document["image"] == document["video"]["thumbnailUrl"] == "https://example.org/b.jpg"
