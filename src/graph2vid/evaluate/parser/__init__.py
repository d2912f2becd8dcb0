"""Judging parsers: entities, edges and graphs against an annotated corpus, expert graphs and real executions."""

from __future__ import annotations

from graph2vid.evaluate.parser.parser_experiment import PARSERS_BY_DEFAULT, judge_parsers
from graph2vid.evaluate.parser.parser_report import ParserReport

__all__ = ["PARSERS_BY_DEFAULT", "ParserReport", "judge_parsers"]
