"""The page of a grounding."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from graph2vid.evidence import Cue
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.report import page, write_report

VOID = {"meta", "br"}


class Checker(HTMLParser):
    """Fails on a tag that is closed out of turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def grounding() -> Grounding:
    flow = FlowGraph.from_edges(["Cut <b>the</b> tomato", "Boil & peel eggs", "Mix"], [(0, 2), (1, 2)], "Salad <1>")
    scores = np.zeros((3, 12))
    scores[1, 1:4] = scores[0, 5:7] = 9.0
    return ground(flow, scores=scores, match="raw", drop=-1.0, skip=0.1)


def test_everything_is_there_and_escaped(tmp_path: Path) -> None:
    found = grounding()
    cues = (Cue(1.0, 3.0, "I boil <two> eggs"), Cue(8.0, 9.0, "bye"))
    write_report(tmp_path / "page.html", found, cues, "captions a&b.vtt")
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert written == page(found, cues, "captions a&b.vtt")
    checker = Checker()
    checker.feed(written)
    assert checker.open == []
    for words in ("Salad &lt;1&gt;", "Cut &lt;b&gt;the", "Boil &amp; peel", "&lt;two&gt;", "a&amp;b.vtt", "not shown"):
        assert words in written
    assert "order seen" in written and "prefers-color-scheme: dark" in written
    assert "http" not in written.replace("http://www.w3.org/", "")  # nothing is fetched from elsewhere


def test_without_narration_there_is_no_such_part() -> None:
    assert "What is said" not in page(grounding())
