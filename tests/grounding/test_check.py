"""What a video does otherwise than its procedure says: known videos, enumeration, bad input, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.alignment import align
from graph2vid.cli import main
from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import check_order, ground
from graph2vid.grounding.check import find_deviations
from graph2vid.selfcheck.definition import all_sequences, price_of_runs

STEPS = ["cut", "fry", "boil", "serve"]
NAMED = [(step, step) for step in STEPS]
FLOW = FlowGraph.from_edges(NAMED, [("cut", "fry"), ("fry", "serve"), ("boil", "serve")])


def evidence_of(shown: str, height: float = 5.0) -> NDArray[np.float64]:
    """Evidence of a video that shows just this: a letter per clip, the first of a step's name, or a blank."""
    letters = np.array(list(shown))
    return np.array([np.where(letters == step[0], height, -height) for step in STEPS])


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("ccc fff bbb sss", []),
        ("bb ccc  ff sss ", []),
        ("ccc fff sss", [("skipped", "boil", None)]),
        ("bbb fff ccc sss", [("out of order", "cut", "fry")]),
        ("ccc fff bbb ccc sss", [("repeated", "cut", None)]),
        (
            "ssss cccc ffff",
            [("out of order", "cut", "serve"), ("out of order", "fry", "serve"), ("skipped", "boil", None)],
        ),
    ],
)
def test_known_videos(shown: str, expected: list[tuple[str, str, str | None]]) -> None:
    found = find_deviations(FLOW, evidence_of(shown), clip_seconds=2.0, offset=1.0)
    ids = [
        (one.kind, FLOW.ids[one.step], None if one.after is None else FLOW.ids[one.after]) for one in found.deviations
    ]
    assert ids == expected
    for one in found.deviations:
        assert one.margin > 0 and 0.9 <= one.certainty <= 1
        if one.start is not None and one.end is not None:
            clip = int((one.start - 1.0) / 2.0)
            assert shown[clip] == STEPS[one.step][0]
            assert one.end > one.start
        assert STEPS[one.step] in found.describe(one)


def test_margins_are_those_of_enumeration() -> None:
    random = np.random.default_rng(4)
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 1), (1, 2)])
    skip, repeat = np.full(3, 0.5), np.full(3, 1.0)
    checked = 0
    for _ in range(40):
        evidence = random.normal(size=(3, 5)).round(3) * 2
        found = find_deviations(flow, evidence, skip=0.5, repeat=1.0, certainty=0.5)
        assert found.alignment.cost == pytest.approx(align(flow, -evidence, 0.0, skip, repeat=1.0).cost)
        table = np.vstack([-evidence, np.zeros(5)])
        costs = {
            labels: float(table[list(labels), range(5)].sum()) + price_of_runs(flow, runs, skip, repeat, None, 1.0)
            for labels, runs in all_sequences(3, 5)
        }
        for one in found.deviations:
            span = slice(*(round(time) for time in (one.start or 0.0, one.end or 0.0)))
            others = []
            for labels, cost in costs.items():
                first = {step: labels.index(step) for step in set(labels) - {-1}}
                in_place = one.step in first and all(first[one.step] < first.get(k, 9) for k in range(one.step + 1, 3))
                stops = [run.stop for run in found.alignment.segments if run.step == one.step and run.stop < span.stop]
                gap = labels[max(stops, default=0) : span.start]
                once = one.step not in labels[span] or one.step not in labels[: span.start] or {one.step} == set(gap)
                elsewhere = once if one.kind == "repeated" else one.step not in labels
                if (one.kind != "repeated" and in_place) or (one.kind != "skipped" and elsewhere):
                    others.append(cost)
            assert one.margin == pytest.approx(min(others) - found.alignment.cost, abs=1e-9)
            checked += 1
    assert checked > 40


def test_optional_steps_and_branches_not_taken_are_not_missed() -> None:
    flow = FlowGraph.from_edges(
        NAMED, [(0, 1), (0, 2), (1, 3), (2, 3)], optional=["cut"], alternatives=[["fry", "boil"]]
    )
    found = find_deviations(flow, evidence_of("bbbb   ssss"))
    assert found.deviations == ()
    missing = find_deviations(flow, evidence_of("ssss"))
    assert [FLOW.ids[one.step] for one in missing.deviations] == ["fry"]


def test_what_is_not_sure_is_not_said() -> None:
    weak = evidence_of("ccc fff sss", height=0.5)
    assert find_deviations(FLOW, weak).deviations == ()
    assert len(find_deviations(FLOW, weak, certainty=0.5).deviations) == 1


def test_bad_input() -> None:
    evidence = evidence_of("cfbs")
    for wrong in ({"skip": np.nan}, {"repeat": -1.0}, {"certainty": 0.2}, {"gamma": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            find_deviations(FLOW, evidence, **wrong)  # type: ignore[arg-type]
    forced = evidence.copy()
    forced[:, 2] = [-np.inf, np.inf, -np.inf, -np.inf]  # this clip must show a step, and only one may be there
    assert find_deviations(FLOW, forced).alignment.labels[2] == 1


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    ground(FLOW, scores=evidence_of("bbb fff ccc sss"), preset="log_odds", margins=True).save(path)
    return path


def test_command(result: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(result), "--json", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert "1 deviation " in said and "out of order" in said and "after step fry" in said
    document: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    assert [one["step"] for one in document["deviations"]] == ["cut"]
    assert main(["check", str(result), "--certainty", "0.2"]) == 2


def test_ground_checks_in_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FLOW.save(tmp_path / "flow.json")
    np.save(tmp_path / "scores.npy", evidence_of("bbb fff ccc sss"))
    written = tmp_path / "result.json"
    asked = ["ground", str(tmp_path / "flow.json"), "--scores", str(tmp_path / "scores.npy"), "--preset", "log_odds"]
    page = tmp_path / "page.html"
    assert main([*asked, "--check", "-o", str(written), "--report", str(page)]) == 0
    assert '"check": [{' in page.read_text().replace('"check":[{', '"check": [{')
    said = capsys.readouterr().out
    assert main(["check", str(written), "--json", str(tmp_path / "found.json")]) == 0
    assert capsys.readouterr().out in said
    kept = json.loads(written.read_text())["options"]["check"]
    found = json.loads((tmp_path / "found.json").read_text())
    assert kept["deviations"][0].pop("margin") == pytest.approx(found["deviations"][0].pop("margin"), rel=1e-3)
    assert kept["deviations"][0].pop("certainty") == pytest.approx(found["deviations"][0].pop("certainty"), rel=1e-3)
    assert kept == found
    assert main(asked) == 0
    assert "deviation" not in capsys.readouterr().out


def test_a_procedure_too_large_to_check_is_grounded_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [f"step {i}" for i in range(24)]  # more ideals than a machine may have
    FlowGraph.bag(steps).save(tmp_path / "flow.json")
    np.save(tmp_path / "scores.npy", np.eye(24) * 9 - 1)
    asked = ["ground", str(tmp_path / "flow.json"), "--scores", str(tmp_path / "scores.npy"), "--preset", "log_odds"]
    extras = ["--check", "--no-confidence", "-o", str(tmp_path / "result.json")]
    assert main([*asked, *extras]) == 0
    assert "not checked: the procedure of 24 steps" in capsys.readouterr().out
    assert "check" not in json.loads((tmp_path / "result.json").read_text())["options"]


def test_a_result_without_evidence_is_refused(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(result.read_text())
    assert all(segment["margin"] >= 0 or segment["margin"] == "inf" for segment in document["segments"])
    del document["evidence"]
    result.write_text(json.dumps(document))
    assert main(["check", str(result)]) == 2
    assert "no evidence" in capsys.readouterr().err


def test_margins_survive_the_file(tmp_path: Path) -> None:
    found = ground(FlowGraph.chain(["a"]), scores=np.ones((1, 1)), match="raw", drop="constant:1", margins=True)
    assert found.segments[0].margin == np.inf
    assert found.options["order_margin"] == "inf"
    found.save(tmp_path / "one.json")
    assert type(found).load(tmp_path / "one.json").segments == found.segments
    assert check_order(found).deviations == ()
