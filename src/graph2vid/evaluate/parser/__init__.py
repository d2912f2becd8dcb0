"""Evaluating parsers: entities, edges and graphs against an annotated corpus, expert graphs and real executions."""

from __future__ import annotations

from graph2vid.evaluate.parser.entity_scores import score_entities
from graph2vid.evaluate.parser.graph_scores import expert_texts, recipe_texts
from graph2vid.evaluate.parser.parser_experiment import evaluate_parsers

__all__ = ["evaluate_parsers", "expert_texts", "recipe_texts", "score_entities"]
