"""How many steps are shown: optional steps, branches, and one count in every place that says one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph2vid.flow import FlowGraph
from graph2vid.flow.messages import ordinal
from graph2vid.grounding import Grounding, check_order, ground
from graph2vid.grounding.step_count import count_steps
from graph2vid.grounding.timeline import draw_timeline
from graph2vid.report import view_model

FLOW = FlowGraph.from_edges(
    ["cut", "salt", "fry", "boil", "drain", "serve"],
    [(0, 5)],
    optional=[1],
    alternatives=[[[2], [3, 4]]],
)


@pytest.mark.parametrize(
    ("shown", "missing", "words"),
    [
        ([0, 1, 2, 5], [], "4 of 4 steps shown, 2 of branches not taken"),
        ([5, 0, 2], [], "3 of 3 steps shown, 1 optional left out, 2 of branches not taken"),
        ([0, 3], [4, 5], "2 of 4 steps shown, 1 optional left out, 1 of branches not taken"),
        ([0, 5], [2], "2 of 3 steps shown, 1 optional left out, 2 of branches not taken"),
        ([0, 1, 2, 3, 4, 5], [], "6 of 6 steps shown"),
        ([], [0, 2, 5], "0 of 3 steps shown, 1 optional left out, 2 of branches not taken"),
    ],
)
def test_counts(shown: list[int], missing: list[int], words: str) -> None:
    count = count_steps(FLOW, shown)
    assert list(count.missing) == missing and str(count) == words
    everything = (*count.shown, *count.missing, *count.optional, *count.untaken)
    assert sorted(everything) == list(range(len(FLOW)))


def test_a_doubtful_step_is_shown_and_called_doubtful() -> None:
    count = count_steps(FLOW, [0, 1, 2, 5], doubtful=[5])
    assert str(count) == "4 of 4 steps shown, 1 doubtful, 2 of branches not taken"
    assert count.to_json() == {"shown": 4, "wanted": 4, "missing": 0, "optional": 0, "untaken": 2, "doubtful": 1}


def test_every_place_says_the_same(tmp_path: Path) -> None:
    evidence = np.full((6, 12), -5.0)
    for step, clip in ((0, 0), (2, 4), (5, 8)):
        evidence[step, clip : clip + 3] = 5.0
    found = ground(FLOW, scores=evidence, preset="log_odds", skip=0.0)
    words = "3 of 3 steps shown, 1 optional left out, 2 of branches not taken"
    assert str(found.count) == words
    assert words in draw_timeline(found, 120).plain
    assert words in repr(found) and words in (found._repr_svg_() or "")
    check = check_order(found)
    assert check.verdict == f"the video follows the procedure ({words})"
    model = view_model(found, check=check)
    assert model["count"]["words"] == words and model["check"]["verdict"] == check.verdict
    found.save(tmp_path / "r.json")
    assert Grounding.load(tmp_path / "r.json").count == found.count
    document = found.to_json()
    assert document["count"] == {"shown": 3, "wanted": 3, "missing": 0, "optional": 1, "untaken": 2, "doubtful": 0}
    assert [one["number"] for one in document["steps"]] == [1, 2, 3, 4, 5, 6]
    assert [one["order"] for one in document["steps"]] == [1, None, 2, None, None, 3]


def test_ordinals() -> None:
    written = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd"}
    assert {place: ordinal(place) for place in written} == written
