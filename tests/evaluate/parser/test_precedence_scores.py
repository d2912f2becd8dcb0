"""The precedences of ``auto`` on real how-tos."""

from __future__ import annotations

import pytest

from graph2vid.datasets import read_wikihow_fg
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.precedence_scores import precedence_scores
from layouts import real_data


@pytest.mark.slow
def test_auto_is_not_below_the_written_order_in_any_domain() -> None:
    found = precedence_scores(ParsedGraphs(["linear", "auto"]), read_wikihow_fg(real_data("wikihow_fg") / "wikihow_fg"))
    assert len(found) == 5
    for domain, counts in found.items():
        assert counts["auto"].f1 >= counts["linear"].f1 - 0.005, domain
    assert found["all"]["auto"].f1 >= 0.945
