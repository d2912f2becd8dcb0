"""Times as text, and the drawing in the terminal."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import GroundedSegment, Grounding
from graph2vid.grounding.timeline import draw_timeline, print_timeline
from graph2vid.grounding.times import clips_in_span, format_time, parse_span, parse_time


def example(texts: list[str] | None = None, title: str = "Salad") -> Grounding:
    texts = texts or ["cut the tomato", "cut the cucumber", "mix it all", "serve"]
    flow = FlowGraph.bag([(name, text) for name, text in zip("abcd", texts, strict=True)], title)
    return Grounding(
        flow=flow,
        segments=(
            GroundedSegment(1, "b", texts[1], 10.0, 40.0, 0.75),
            GroundedSegment(0, "a", texts[0], 40.0, 60.0, 0.5),
            GroundedSegment(2, "c", texts[2], 80.0, 100.0, 1.0),
        ),
        not_shown=(3,),
        order=(1, 0, 2),
        cost=3.5,
        labels=np.repeat([-1, 1, 0, -1, 2], [10, 30, 20, 20, 20]),
    )


def plain(grounding: Grounding, width: int = 80, **options: bool) -> list[str]:
    return draw_timeline(grounding, width, **options).plain.splitlines()


def test_rows_stand_in_the_order_of_the_video() -> None:
    lines = plain(example())
    assert lines[0] == "Salad"
    assert lines[1] == "3 of 4 steps shown, 0:00.0–1:40.0 in 100 clips of 1 s, cost 3.5"
    assert lines[2].split() == ["#", "id", "step"]
    assert [line.split()[:2] for line in lines[3:6]] == [["2", "b"], ["1", "a"], ["3", "c"]]
    assert lines[6].startswith("background") and lines[7].startswith("4 d")
    assert lines[3].endswith("0:10.0–0:40.0  75%") and lines[5].endswith("1:20.0–1:40.0 100%")
    assert lines[6].endswith("30%") and lines[7].endswith("not shown")
    assert lines[8:] == ["order found 2 → 1 → 3"]


def test_a_step_has_its_place_in_the_procedure_as_number_whatever_its_id() -> None:
    """Ids that look like numbers of other steps are set beside the number, under a head that says which is which."""
    found = example()
    steps = [(name, text) for name, text in zip(["3", "1", "9", "4"], found.flow.texts, strict=True)]
    lines = plain(replace(found, flow=FlowGraph.bag(steps)))
    assert [line.split()[:3] for line in lines[1:5]] == [
        ["#", "id", "step"],
        ["2", "1", "cut"],
        ["1", "3", "cut"],
        ["3", "9", "mix"],
    ]
    plainly = plain(replace(found, flow=FlowGraph.bag(found.flow.texts)))
    assert [line.split()[:2] for line in plainly[1:4]] == [["2", "cut"], ["1", "cut"], ["3", "mix"]]


def test_bars_lie_where_the_segments_are() -> None:
    lines = plain(example())
    bars = {name: line for line in lines for name in line.split()[:2]}
    begin = bars["background"].index("░")
    width = bars["c"].rindex("█") + 1 - begin
    for name, (start, end) in {"b": (10, 40), "a": (40, 60), "c": (80, 100)}.items():
        cells = [place - begin for place, sign in enumerate(bars[name]) if sign == "█"]
        assert cells[0] == round(start * width / 100) and cells[-1] + 1 == round(end * width / 100)
    gaps = [place - begin for place, sign in enumerate(bars["background"]) if sign == "░"]
    assert 0 in gaps and round(70 * width / 100) in gaps and round(50 * width / 100) not in gaps


def test_a_very_short_step_is_seen() -> None:
    flow = FlowGraph.chain(["blink"])
    last = np.full(10_000, -1)
    last[-1] = 0
    found = Grounding(flow, (GroundedSegment(0, "1", "blink", 9999.0, 10_000.0),), (), (0,), 1.0, last)
    assert plain(found)[1].count("█") == 1


@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("texts", [None, ["x" * 200] * 4, ["切番茄" * 30] * 4, ["", "", "", ""], ["a", "b", "c", "d"]])
def test_no_line_is_wider_than_the_terminal(width: int, texts: list[str] | None) -> None:
    found = example(texts, title="t" * 200)
    for line in plain(found, width):
        assert cell_len(line) <= width
    assert any("█" in line for line in plain(found, width))


def test_texts_cannot_steer_the_terminal() -> None:
    drawing = "\n".join(plain(example(["a\x1b[31mred\nline", "[bold]not markup[/]", "c", "d"])))
    assert "\x1b" not in drawing and "[bold]" in drawing


def test_steps_in_several_parts() -> None:
    flow = FlowGraph.chain(["stir"])
    parts = (GroundedSegment(0, "1", "stir", 0.0, 1.0, 1.0), GroundedSegment(0, "1", "stir", 2.0, 5.0, 0.5))
    lines = plain(Grounding(flow, parts, (), (0,), 1.0, np.array([0, -1, 0, 0, 0])))
    assert lines[1].endswith("0:00.0–0:05.0 ×2  62%")


def test_no_colour_codes_and_plain_signs_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    print_timeline(example(), Console(file=stream, width=80))
    assert "\x1b" not in stream.getvalue() and "█" in stream.getvalue()
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    print_timeline(example(), Console(file=raw, width=80))
    raw.seek(0)
    assert "#" in raw.read()


def test_colours_where_there_is_one() -> None:
    stream = io.StringIO()
    print_timeline(example(), Console(file=stream, width=80, force_terminal=True, color_system="truecolor"))
    assert "\x1b[38;2;230;159;0m" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00.0"),
        (59.94, "0:59.9"),
        (59.96, "1:00.0"),
        (3599.96, "1:00:00.0"),
        (3725.5, "1:02:05.5"),
        (-1.5, "-0:01.5"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert format_time(seconds) == text
    if seconds >= 0:
        assert parse_time(text) == pytest.approx(seconds, abs=0.051)


def test_spans() -> None:
    assert parse_span("40-60") == (40.0, 60.0)
    assert parse_span("0:40 – 1:00.5") == (40.0, 60.5)
    assert parse_span("-10") == (-math.inf, 10.0) and parse_span("1:30-") == (90.0, math.inf)
    for bad in ("", "-", "5", "60-40", "5-5", "a-b", "1-2-3", "nan-3"):
        with pytest.raises(InputError):
            parse_span(bad)


def test_clips_of_a_span() -> None:
    assert clips_in_span(0.5, 2.5, 5, 1.0, 0.0) == (0, 2)
    assert clips_in_span(0.51, 2.51, 5, 1.0, 0.0) == (1, 3)
    assert clips_in_span(-math.inf, math.inf, 5, 1.0, 100.0) == (0, 5)
    assert clips_in_span(0.0, 1.0, 5, 1.0, 100.0) == (0, 0)


def test_a_terminal_beyond_measure_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000000")
    drawn = io.StringIO()
    print_timeline(example(), Console(file=drawn))
    assert max(map(len, drawn.getvalue().splitlines())) <= 1000
