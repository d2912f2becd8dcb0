"""Judging the parsers from end to end: the corpus, the expert graphs, the real executions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from graph2vid.datasets.captaincook4d import load as load_captaincook4d
from graph2vid.datasets.crosstask import read_executions
from graph2vid.datasets.recipe_flowgraph import read_recipes
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.entity_scores import EntityModel, judge_entities
from graph2vid.evaluate.parser.executions import judge_by_executions
from graph2vid.evaluate.parser.graph_scores import Text, expert_texts, judge_graphs, recipe_texts
from graph2vid.evaluate.parser.parser_report import ENTITY_MODEL, ParserReport

PARSERS_BY_DEFAULT = ("rules", "learned", "linear", "bag")
LEARNED = "learned"
CROSSTASK = "crosstask"
CAPTAINCOOK4D = "captaincook4d"
_SIBLINGS = {CROSSTASK: "crosstask_release", CAPTAINCOOK4D: "captaincook4d"}

Progress = Callable[[str, int, int], None]


def judge_parsers(
    data: str | os.PathLike[str],
    split: str = "dev",
    parsers: Sequence[str] = PARSERS_BY_DEFAULT,
    *,
    crosstask: str | os.PathLike[str] | None = None,
    captaincook4d: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    model: str | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> ParserReport:
    """Judge parsers on everything that can tell a good graph from a bad one.

    Parameters
    ----------
    data : path
        The recipe flow graph corpus.
    split : str
        Of the corpus.
    parsers : sequence of str
        By name. What cannot work here (a package or weights are missing) is listed with the reason.
    crosstask : path, optional
        CrossTask with its procedures; by default ``crosstask_release`` beside ``data``, if it is there.
    captaincook4d : path, optional
        CaptainCook4D; by default the folder of that name beside ``data``, if it is there.
    weights : path, optional
        Of the learned parser; by default those that come with graph2vid.
    model : str, optional
        The spaCy model of the rules; by default as the parser resolves it.
    command : str
        What repeats this, for the report.
    progress : callable, optional
        Called as (what is done, done, total).
    """
    began = perf_counter()
    data = Path(data)
    recipes = read_recipes(data, split)
    options: dict[str, dict[str, Any]] = {
        LEARNED: {} if weights is None else {"weights": Path(weights)},
        "rules": {} if model is None else {"model": model},
    }
    graphs = ParsedGraphs(parsers, options)
    unavailable: dict[str, str] = {}
    entities = None
    if LEARNED in parsers:
        with _noting(unavailable, ENTITY_MODEL, unless=weights is not None):
            entities = judge_entities(load_entity_model(weights), recipes, progress)
    sentence_graphs = judge_graphs(graphs, recipe_texts(recipes), progress)
    speed = {
        name: graphs.texts[name] / graphs.seconds[name] if graphs.seconds[name] else math.nan
        for name in sentence_graphs
    }
    texts: list[Text] = []
    with _noting(unavailable, CAPTAINCOOK4D, unless=captaincook4d is not None):
        texts = expert_texts(load_captaincook4d(_beside(data, CAPTAINCOOK4D, captaincook4d)))
    experts = judge_graphs(graphs, texts, progress) if texts else {}
    executions = None
    with _noting(unavailable, CROSSTASK, unless=crosstask is not None):
        executions = judge_by_executions(read_executions(_beside(data, CROSSTASK, crosstask)), graphs)
    return ParserReport(
        split,
        len(recipes),
        sum(len(recipe.sentences) for recipe in recipes),
        entities,
        sentence_graphs,
        speed,
        experts,
        len(texts),
        executions,
        graphs.unavailable | unavailable,
        command,
    ).timed(perf_counter() - began)


@contextmanager
def _noting(unavailable: dict[str, str], what: str, *, unless: bool) -> Iterator[None]:
    """Note why something is missing, and go on; unless the user asked for just that."""
    try:
        yield
    except (Graph2VidError, ImportError) as error:
        if unless:
            raise
        unavailable[what] = str(error)


def load_entity_model(weights: str | os.PathLike[str] | None) -> EntityModel:
    """Load the tagger and edge parser that the learned parser stands on."""
    from graph2vid.text.learned.learned_parser import RecipeModel

    found: EntityModel = RecipeModel.load(None if weights is None else Path(weights))
    return found


def _beside(data: Path, name: str, given: str | os.PathLike[str] | None) -> Path:
    """Return the folder that was given, or the one beside the corpus."""
    if given is not None:
        return Path(given)
    sibling = data.resolve().parent / _SIBLINGS[name]
    if not sibling.is_dir():
        raise InputError(f"there is no folder {sibling.name} beside the corpus; -o {name}=DIR says where it is")
    return sibling
