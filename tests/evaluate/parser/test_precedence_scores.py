"""The precedences of ``auto`` on real how-tos."""

from __future__ import annotations

import pytest

from graph2vid.datasets import read_wikihow_fg
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.precedence_scores import precedence_scores
from graph2vid.text.rules.dependency_parser import has_model
from layouts import real_data


@pytest.mark.slow
@pytest.mark.skipif(not has_model(), reason="no English spaCy model is installed")
def test_auto_is_not_below_the_written_order_in_any_domain() -> None:
    found = precedence_scores(ParsedGraphs(["linear", "auto"]), read_wikihow_fg(real_data("wikihow_fg") / "wikihow_fg"))
    assert len(found) == 5
    for domain, counts in found.items():
        assert counts["auto"].f1 >= counts["linear"].f1 - 0.005, domain
    assert found["all"]["auto"].f1 >= 0.950
