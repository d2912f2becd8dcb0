"""Judging parsers: entities, edges and graphs against an annotated corpus, expert graphs and real executions."""

from __future__ import annotations

from graph2vid.evaluate.parser.report import ParserReport
from graph2vid.evaluate.parser.study import PARSERS_BY_DEFAULT, judge_parsers

__all__ = ["PARSERS_BY_DEFAULT", "ParserReport", "judge_parsers"]
