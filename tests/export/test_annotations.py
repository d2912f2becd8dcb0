"""Annotations from ELAN and CSV: what was exported comes back, corrections are kept exactly, bad files are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from found import groundings, make_grounding
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.export import Annotation, read_annotations, to_constraints, write_export
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground

FLOW = FlowGraph.from_edges([("a", "cut tomato"), ("b", "cut cucumber"), ("c", "mix")], [("a", "c"), ("b", "c")])


@pytest.mark.parametrize("name", ["csv", "elan", "crosstask"])
@given(grounding=groundings())
@settings(max_examples=40, deadline=None)
def test_exports_are_read_back(name: str, tmp_path_factory: pytest.TempPathFactory, grounding: Grounding) -> None:
    if name == "elan":
        pytest.importorskip("pympi")
    path = tmp_path_factory.mktemp("back") / ("a.eaf" if name == "elan" else "a.csv")
    grounding = grounding if grounding.offset >= 0 else make_grounding(grounding.labels.tolist(), grounding.flow.texts)
    write_export(path, grounding, name)
    if name == "crosstask" and not grounding.segments:
        with pytest.raises(FormatError, match="is empty"):
            read_annotations(path, grounding.flow)
        return
    found = read_annotations(path, grounding.flow)
    shown = [one for one in found if one.start is not None]
    assert [one.step for one in shown] == [segment.step for segment in grounding.segments]
    for one, segment in zip(shown, grounding.segments, strict=True):
        assert (one.start, one.end) == pytest.approx((segment.start, segment.end), abs=6e-4)
    if name == "csv":
        assert [one.step for one in found if one.start is None] == list(grounding.not_shown)


def test_a_correction_is_kept_exactly(tmp_path: Path) -> None:
    scores = np.zeros((3, 12))
    scores[0, 0:3] = scores[1, 4:7] = scores[2, 8:11] = 5.0
    settings = {"scores": scores, "match": "raw", "drop": "constant:-1", "skip": "constant:4"}
    before = ground(FLOW, **settings)
    assert before.labels.tolist() == [0, 0, 0, -1, 1, 1, 1, -1, 2, 2, 2, -1]
    path = tmp_path / "a.csv"
    path.write_text("id,start,end\nb,1,3\nc,0:05,0:10\n", encoding="utf-8")
    after = ground(FLOW, **settings, constraints=to_constraints(read_annotations(path, FLOW)))
    assert after.labels.tolist()[1:3] == [1, 1] and after.labels.tolist()[5:10] == [2] * 5
    assert [(s.start, s.end) for s in after.segments_of("b")] == [(1.0, 3.0)]
    assert [(s.start, s.end) for s in after.segments_of("c")] == [(5.0, 10.0)]
    path.write_text("id,start,end\nb,,\n", encoding="utf-8")
    assert ground(FLOW, **settings, constraints=to_constraints(read_annotations(path, FLOW))).not_shown == (1,)


def test_tables_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffText;Start;END;by\r\n\r\nmix; 0:04 ;1:00.5;me\r\ncut  tomato;0;4;you\r\n".encode())
    assert read_annotations(path, FLOW) == (Annotation(0, 0.0, 4.0), Annotation(2, 4.0, 60.5))
    path.write_text("3,4,60.5\n1,0,4\n", encoding="utf-8")
    assert read_annotations(path, FLOW) == (Annotation(0, 0.0, 4.0), Annotation(2, 4.0, 60.5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "the head must name the columns id, start and end"),
        ("id,start,end\ncut tomate,1,2\n", "row 2: unknown step 'cut tomate'; did you mean 'cut tomato'"),
        ("id,start,end\na,1\n", "row 2 has 2 cells"),
        ("id,start,end\na,1,\n", "row 2: give both start and end"),
        ("id,start,end\na,1,x\n", "row 2: 'x' is not a time"),
        ("id,start,end\na,2,2\n", "row 2: the end .2 s. must be later"),
        ('id,start,end\n"a,1,2\n', "line 2: not CSV"),
        ("1,0,4\nmix,5,6\n", "row 2: a number of a step"),
        ("4,0,4\n", "there is no step 4; the procedure has the steps 1 to 3"),
    ],
)
def test_bad_tables_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_annotations(path, FLOW)


def test_bad_elan_files_are_named(tmp_path: Path) -> None:
    pympi = pytest.importorskip("pympi")
    with pytest.raises(InputError, match=r"read from \.eaf"):
        read_annotations(tmp_path / "a.txt", FLOW)
    with pytest.raises(Graph2VidError, match=r"cannot read .*none\.eaf"):
        read_annotations(tmp_path / "none.eaf", FLOW)
    path = tmp_path / "a.eaf"
    path.write_text("<a>", encoding="utf-8")
    with pytest.raises(FormatError, match="cannot be read as an ELAN file"):
        read_annotations(path, FLOW)
    eaf = pympi.Elan.Eaf()
    for tier in ("hands", "words"):
        eaf.add_tier(tier)
        eaf.add_annotation(tier, 0, 1000, "mix")
    eaf.to_file(path)
    with pytest.raises(InputError, match=r"not one alone has annotations \('hands', 'words'\)"):
        read_annotations(path, FLOW)
    with pytest.raises(InputError, match="no tier 'feet'"):
        read_annotations(path, FLOW, tier="feet")
    assert read_annotations(path, FLOW, tier="words") == (Annotation(2, 0.0, 1.0),)
    eaf.timeslots = dict.fromkeys(eaf.timeslots)
    path.unlink()
    eaf.to_file(path)
    with pytest.raises(FormatError, match="has no times"):
        read_annotations(path, FLOW, tier="words")
