"""What a video does otherwise than its procedure says: known videos, enumeration, bad input, the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph2vid.alignment import Constraint
from graph2vid.cli import main
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import FlowGraph, as_written, certainly
from graph2vid.grounding import OrderCheck, check_order, ground
from graph2vid.grounding.order_check import _Search, find_deviations, smallest_cover
from graph2vid.selfcheck.enumerate import all_sequences, segments_cost

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
            [("out of order", "serve", "cut"), ("skipped", "boil", None)],
        ),
    ],
)
def test_known_videos(shown: str, expected: list[tuple[str, str, str | None]]) -> None:
    found = find_deviations(FLOW, evidence_of(shown), clip_seconds=2.0, offset=1.0)
    ids = [
        (one.kind, FLOW.ids[one.step], next((FLOW.ids[k] for k in (one.after, one.before) if k is not None), None))
        for one in found.deviations
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
    flow = FlowGraph.from_edges(["a", "b", "c"], [(0, 1), (0, 2), (1, 2)])
    skip, repeat = np.full(3, 0.5), np.full(3, 1.0)
    sure = 1 / (1 + np.exp(-1.5))  # a skip and a repetition for an edge that is not implied
    checked = moved = with_free = 0
    for _ in range(60):
        evidence = random.normal(size=(3, 5)).round(3) * 2
        found = find_deviations(flow, evidence, skip=0.5, repeat=1.0, certainty=0.5)
        table = np.vstack([-evidence, np.zeros(5)])
        free = _Search(flow, evidence, 0.5, 1.0, None).free
        held = [step for step in range(3) if step not in free]
        soft = FlowGraph.from_edges(["a", "b", "c"], [(*edge, sure) for edge in pairwise(held)])
        costs = {
            labels: float(table[list(labels), range(5)].sum())
            + segments_cost(soft, runs, skip, repeat, None, 1.0)
            + 1.5 * len(free & {*labels})
            for labels, runs in all_sequences(3, 5)
        }
        with_free += bool(free)
        least = min(costs.values())
        assert found.alignment is not None
        assert found.alignment.cost == pytest.approx(least)
        for one in (*found.deviations, *found.unsure):
            span = slice(*(round(time) for time in (one.start or 0.0, one.end or 0.0)))
            moved += one.kind == "out of order"
            others = []
            for labels, cost in costs.items():
                first = {step: labels.index(step) for step in set(labels) - {-1}}
                in_place = one.step in first and all(
                    (step < one.step) == (first[step] < first[one.step]) for step in {*first} & {*held} - {one.step}
                )
                stops = [run.stop for run in found.alignment.segments if run.step == one.step and run.stop < span.stop]
                gap = labels[max(stops, default=0) : span.start]
                once = one.step not in labels[span] or one.step not in labels[: span.start] or {one.step} == set(gap)
                elsewhere = once if one.kind == "repeated" else one.step not in labels
                if one.kind != "repeated" and in_place:
                    others.append(cost - 1.5 * (one.step in free))
                if one.kind != "skipped" and elsewhere:
                    others.append(cost)
            assert one.margin == pytest.approx(min(others) - least, abs=1e-9)
            checked += 1
    assert checked > 60 and moved >= 5 and with_free >= 2


SHAKSHUKA = ["soften onion", "stir spices", "pour tomatoes", "simmer", "make hollows", "crack eggs", "cover", "toast"]


def narrated(order: Sequence[int], steps: int = 8) -> NDArray[np.float64]:
    """Evidence of a narration that names these steps in this order, each for 6 clips of 10."""
    scores = np.random.default_rng(1).normal(-4.0, 0.5, size=(steps, 10 * len(order)))
    for place, step in enumerate(order):
        scores[step, 10 * place + 2 : 10 * place + 8] += 7.0
    return scores


@pytest.mark.parametrize("is_guessed", [True, False])
def test_a_step_written_last_and_done_first_is_one_finding(is_guessed: bool) -> None:
    written = as_written(FlowGraph.bag(SHAKSHUKA))
    flow = written if is_guessed else FlowGraph.chain(SHAKSHUKA)
    found = find_deviations(flow, narrated([7, 0, 1, 2, 3, 4, 5, 6]))
    (one,) = (*found.deviations, *found.unsure)
    assert (one.kind, one.step, one.before, one.start) == ("out of order", 7, 0, 2.0) and one.certainty > 0.9
    assert found.describe(one) == (
        "step 8 (toast) is done earlier than written, at 0:02.0–0:08.0: before step 1 (soften onion)"
        if is_guessed
        else "step 8 (toast) is done out of order at 0:02.0–0:08.0, before step 1 (soften onion), "
        "which it had to wait for"
    )
    assert OrderCheck.from_json(found.to_json(), flow).deviations == found.deviations


def test_a_skipped_and_a_repeated_step_beside_one_that_moved() -> None:
    flow = as_written(FlowGraph.bag(SHAKSHUKA))
    found = find_deviations(flow, narrated([7, 0, 1, 2, 3, 1, 4, 6]))
    assert [(one.kind, one.step) for one in found.deviations] == [("out of order", 7), ("repeated", 1), ("skipped", 5)]
    assert found.unsure == () and found.verdict == "3 deviations (7 of 8 steps shown)"


def test_a_step_that_might_be_elsewhere_is_not_called_skipped() -> None:
    evidence = narrated([7, 0, 1, 2, 3, 4, 5, 6])
    evidence[7, 2:8] = 0.95  # less than what another order costs, and more than noise
    flow = as_written(FlowGraph.bag(SHAKSHUKA))
    found = find_deviations(flow, evidence)
    (one,) = found.unsure
    assert (found.deviations, one.step, one.start, one.end) == ((), 7, 2.0, 8.0)
    assert found.describe(one) == "step 8 (toast) may be at 0:02.0–0:08.0, where the result does not show it"


def test_edges_of_a_person_are_rules_beside_the_written_order() -> None:
    flow = certainly(as_written(FlowGraph.bag(SHAKSHUKA)), (5, 7))
    (one,) = find_deviations(flow, narrated([7, 0, 1, 2, 3, 4, 5, 6])).deviations
    assert (one.kind, one.step, one.before) == ("out of order", 7, 0)


def test_a_step_that_moved_far_in_a_long_procedure_is_found_once() -> None:
    flow = FlowGraph.chain([f"step {k}" for k in range(30)])
    evidence = np.full((30, 300), -5.0)
    for place, step in enumerate([*range(3), *range(4, 30), 3]):
        evidence[step, 10 * place : 10 * place + 8] = 5.0
    (one,) = find_deviations(flow, evidence).deviations
    assert (one.kind, one.step, one.after) == ("out of order", 3, 4)


def test_a_sliver_in_its_place_does_not_hide_that_a_step_was_done_first() -> None:
    evidence = narrated([17, *range(17)], 18)
    evidence[17, -1] = 0.5
    flow = as_written(FlowGraph.bag([f"step {k}" for k in range(18)]))
    (one,) = find_deviations(flow, evidence).deviations
    assert (one.kind, one.step, one.before) == ("out of order", 17, 0)


def test_alternatives_are_not_compared_by_the_written_order() -> None:
    flow = FlowGraph.from_edges(STEPS, [(0, 1, 0.98), (0, 3, 0.98)], alternatives=[["2", "3"]])
    (one,) = find_deviations(flow, evidence_of("sss ccc bbb")).deviations
    assert one.kind == "out of order" and one.step in (0, 3)


def test_a_doubtful_step_keeps_the_verdict_from_being_certain() -> None:
    flow = FlowGraph.chain(NAMED)
    result = ground(flow, scores=evidence_of("ccc fff bbb sss"), preset="log_odds")
    assert check_order(result).follows
    segments = (replace(result.segments[0], why="a confidence below 50%"), *result.segments[1:])
    found = check_order(replace(result, segments=segments))
    assert found.deviations == found.unsure == () and not found.follows
    words = "the video follows the procedure, as far as it is certain; 1 step is doubtful"
    assert found.verdict == f"{words} (4 of 4 steps shown, 1 doubtful)"


def test_smallest_cover() -> None:
    assert smallest_cover([], [0, 1, 2]) == []
    assert smallest_cover([(1, 0)], [1, 0]) == [0]  # of two that changed places the later
    assert smallest_cover([(4, 2), (4, 3)], [4, 2, 3]) == [4]
    random = np.random.default_rng(0)
    for _ in range(40):
        order = random.permutation(7).tolist()
        pairs = [(a, b) for a, b in combinations(order, 2) if a > b and random.random() < 0.8]
        sizes = (
            size
            for size in range(8)
            for steps in combinations(range(7), size)
            if all({*steps} & {*pair} for pair in pairs)
        )
        cover = smallest_cover(pairs, order)
        assert len(cover) == next(sizes) and all({*cover} & {*pair} for pair in pairs)


TYRE = """Change a bicycle tyre

1. Take the wheel off the bicycle.
2. Pull the old tyre off the rim with the levers.
3. Put the new tyre onto the rim.
4. Inflate the tyre with the pump.
5. Put the wheel back into the frame.
6. Spin the wheel and test the brakes.
"""
SAID = {
    1: "First I take the wheel off the bicycle.",
    2: "Now I pull the old tyre off the rim with the levers.",
    3: "Now I put the new tyre onto the rim.",
    4: "Then I inflate the tyre with the pump.",
    5: "I put the wheel back into the frame.",
    6: "Last I spin the wheel and test the brakes.",
}


def told(path: Path, order: list[int]) -> Path:
    """Captions of somebody who changes a tyre in this order and says so, every twelve seconds."""
    said = ["Hello everybody, welcome to the workshop.", *(SAID[step] for step in order), "Thank you and goodbye."]
    cues = [
        f"00:{at // 60:02}:{at % 60:02}.000 --> 00:{(at + 4) // 60:02}:{(at + 4) % 60:02}.000\n{text}\n"
        for at, text in zip(range(2, 1000, 12), said, strict=False)
    ]
    path.write_text("\n".join(["WEBVTT\n", *cues]))
    return path


def test_a_wheel_refitted_before_the_tyre_is_on_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One step too early is one deviation's cost, however many steps it overtakes."""
    pytest.importorskip("wordllama")
    procedure, result = tmp_path / "tyre.txt", tmp_path / "result.json"
    procedure.write_text(TYRE)
    wrong, right = (told(tmp_path / f"{order}.vtt", list(map(int, order))) for order in ("125346", "123456"))
    grounded = ["ground", str(procedure), str(wrong), "--parser", "linear", "-o", str(result)]
    assert main(grounded) == 0
    capsys.readouterr()
    assert main(["check", str(result)]) == 0
    said = capsys.readouterr().out
    assert "1 deviation (5 of 6 steps shown)" in said and "not certain" not in said
    assert "step 5 (Put the wheel back into the frame) is done out of order at" in said
    assert "before step 3 (Put the new tyre onto the rim), which it had to wait for" in said
    # Told in the right order, nothing is reported.
    grounded[2] = str(right)
    assert main([*grounded, "--check"]) == 0
    assert "the video follows the procedure (6 of 6 steps shown)" in capsys.readouterr().out


def test_scores_of_a_wheel_refitted_too_early_are_reported_too() -> None:
    flow = FlowGraph.chain([line[3:] for line in TYRE.splitlines()[2:]])
    scores = np.random.default_rng(0).normal(size=(6, 60)) * 0.3
    for at, step in enumerate([0, 1, 4, 2, 3, 5]):
        scores[step, 10 * at : 10 * at + 8] += 3.0
    found = check_order(ground(flow, scores=scores))
    assert [(one.kind, one.step, one.before) for one in found.deviations] == [("out of order", 4, 2)]


def test_nothing_is_said_to_follow_while_a_step_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every step that the result does not show is a deviation, or named as not certain; the count is the result's."""
    flow = FlowGraph.chain(NAMED)
    weak = evidence_of("ccxbbs", height=4.0)
    weak[1, 2] = 0.4
    never = Constraint("forbid", 1, -np.inf, np.inf)
    result = ground(flow, scores=weak, preset="log_odds", constraints=[never], skip=0.1)
    assert result.not_shown == (1,)
    found = check_order(result)
    assert found.deviations == () and not found.follows
    assert [(one.kind, one.step) for one in found.unsure] == [("skipped", 1)]
    assert found.count == result.count and str(found.count) == "3 of 4 steps shown"
    result.save(tmp_path / "r.json")
    assert main(["check", str(tmp_path / "r.json"), "--json", str(tmp_path / "c.json")]) == 0
    said = capsys.readouterr().out
    assert "nor that the video follows the procedure (3 of 4 steps shown)" in said
    assert "not certain:" in said and "step 2 (fry) may be at" in said
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["follows"] is False and [one["number"] for one in document["unsure"]] == [2]


def test_what_the_result_leaves_out_and_the_check_sees_is_not_certain() -> None:
    flow = FlowGraph.chain(NAMED)
    shown = ground(flow, scores=evidence_of("ccffbbss"), preset="log_odds", skip=0.0)
    segments = tuple(one for one in shown.segments if one.step != 1)
    labels = np.where(shown.labels == 1, -1, shown.labels)
    found = check_order(replace(shown, segments=segments, not_shown=(1,), order=(0, 2, 3), labels=labels))
    assert found.deviations == ()
    (one,) = found.unsure
    assert (one.kind, one.step, one.start, one.end) == ("skipped", 1, 2.0, 4.0) and one.certainty < 0.01
    assert found.describe(one) == "step 2 (fry) may be at 0:02.0–0:04.0, where the result does not show it"
    again = OrderCheck.from_json(found.to_json(), flow)
    assert (again.deviations, again.unsure, again.count) == (found.deviations, found.unsure, found.count)
    assert again.verdict == found.verdict


def test_a_step_that_the_result_places_and_the_check_does_not_see() -> None:
    flow = FlowGraph.chain(NAMED)
    result = ground(flow, scores=evidence_of("ccc fff   sss"), preset="log_odds")
    assert result.count.missing == (2,)  # its sliver is there by the order alone
    found = check_order(result)
    (one,) = found.deviations
    assert (one.kind, one.step) == ("skipped", 2) and found.describe(one) == "step 3 (boil) is skipped"
    assert found.count == result.count and found.verdict == "1 deviation (3 of 4 steps shown)"
    again = OrderCheck.from_json(found.to_json(), flow)
    assert again.count == found.count and again.describe(one) == found.describe(one)


def test_checks_of_older_versions_are_read() -> None:
    found = find_deviations(FLOW, evidence_of("ccc fff sss"))
    newer = ("unsure", "shown", "count", "follows")
    document = {key: value for key, value in found.to_json().items() if key not in newer}
    for entry in document["deviations"]:
        del entry["number"]
    again = OrderCheck.from_json(document, FLOW)
    assert again.deviations == found.deviations and again.count == found.count
    for bad in ({**document, "deviations": [3]}, {**document, "shown": ["nothing"]}):
        with pytest.raises(FormatError, match="check: "):
            OrderCheck.from_json(bad, FLOW)


def test_optional_steps_and_branches_not_taken_are_not_missed() -> None:
    flow = FlowGraph.from_edges(
        NAMED, [(0, 1), (0, 2), (1, 3), (2, 3)], optional=["cut"], alternatives=[["fry", "boil"]]
    )
    found = find_deviations(flow, evidence_of("bbbb   ssss"))
    assert found.deviations == ()
    missing = find_deviations(flow, evidence_of("ssss"))
    assert [FLOW.ids[one.step] for one in missing.deviations] == ["fry"]


def test_what_the_result_leaves_out_of_a_branch_that_the_check_does_not_take_is_named() -> None:
    flow = FlowGraph.from_edges(NAMED, [(0, 1), (1, 2), (0, 3)], alternatives=[[["fry", "boil"], ["serve"]]])
    evidence = evidence_of("ccc sss", 1.0)
    evidence[1, 0] = 0.5  # the check would rather see what is served
    found = find_deviations(flow, evidence, shown=[0, 1])
    assert found.count.missing == (2,) and not found.follows
    (one,) = [*found.deviations, *found.unsure]
    assert (one.kind, one.step, one.start) == ("skipped", 2, None)
    assert one.margin == pytest.approx(3.0 + 1.0)  # without what is served, and with the boiling in a clip of its own
    assert found.describe(one) == "step 3 (boil) is skipped"


def test_what_is_not_sure_is_not_said() -> None:
    weak = evidence_of("ccc fff sss", height=0.5)
    found = find_deviations(FLOW, weak)
    assert found.deviations == () and [one.kind for one in found.unsure] == ["skipped"]
    assert not found.follows and "1 deviation is likely, none certain" in found.verdict
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
    assert "1 deviation " in said and "out of order" in said and "after step 2 (fry)" in said
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
    assert '"deviations":[{' in page.read_text()
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
    assert "warning: not checked: the procedure of 24 steps" in capsys.readouterr().err
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


def test_a_likely_deviation_is_said_in_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("wordllama")
    steps = ["take the wheel off", "pull the old tyre off the rim", "mount the new tyre on the rim", "refit the wheel"]
    FlowGraph.chain([*steps, "tighten the axle nuts"]).save(tmp_path / "tyre.json")
    cues = [
        "first we take the wheel off the bike",
        "now pull the old tyre off the rim with the levers",
        "and now refit the wheel into the frame",
        "now mount the new tyre on the rim",
        "and tighten the axle nuts",
    ]
    lines = ["WEBVTT"]
    for at, cue in enumerate(cues):
        lines.append(
            f"\n00:0{(20 * at + 5) // 60}:{(20 * at + 5) % 60:02d}.000 --> "
            f"00:0{(20 * at + 13) // 60}:{(20 * at + 13) % 60:02d}.000\n{cue}"
        )
    (tmp_path / "tyre.vtt").write_text("\n".join(lines))
    assert main(["ground", str(tmp_path / "tyre.json"), str(tmp_path / "tyre.vtt"), "--check"]) == 0
    said = capsys.readouterr().out
    assert "deviation is likely, none certain (4 of 5 steps shown)" in said
    assert "after step 4 (refit the wheel), which had to wait for it" in said
