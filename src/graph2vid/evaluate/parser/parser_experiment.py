"""The evaluation of the parsers from end to end: the corpus, the expert graphs, the real executions."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph2vid._evaluation_options import ParserOptions
from graph2vid.datasets import captaincook4d, read_asynchow, read_executions, read_recipes, read_wikihow_fg
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.counts import LEVEL, SAMPLES, Counts, total
from graph2vid.evaluate.method_runner import Progress
from graph2vid.evaluate.parsed import ParsedGraphs
from graph2vid.evaluate.parser.entity_scores import EdgeScores, EntityModel, EntityScores, TagScores, score_entities
from graph2vid.evaluate.parser.executions import MIN_SUPPORT, ExecutionResults, compare_with_executions
from graph2vid.evaluate.parser.graph_scores import (
    BASELINE,
    GraphScores,
    Text,
    expert_texts,
    recipe_texts,
    score_graphs,
    scores_to_json,
)
from graph2vid.evaluate.parser.precedence_scores import precedence_json, precedence_scores, precedence_table
from graph2vid.evaluate.report import Report, Table

LEARNED = "learned"
CROSSTASK = "crosstask"
CAPTAINCOOK4D = "captaincook4d"
WIKIHOW_FG = "wikihow_fg"
ASYNCHOW = "asynchow"
ENTITY_MODEL = "entity model"
_SIBLINGS = {CROSSTASK: "crosstask_release", **{name: name for name in (CAPTAINCOOK4D, WIKIHOW_FG, ASYNCHOW)}}
_ORDER = ("linear", "auto", "rules", "learned", "manual", "bag")
_PRF = ("precision", "recall", "F1", "annotated")


def evaluate_parsers(
    data: str | os.PathLike[str], options: ParserOptions | None = None, progress: Progress | None = None
) -> Iterator[Report]:
    """Evaluate parsers on everything that can tell a good graph from a bad one; yield the report after each part.

    Parameters
    ----------
    data : path
        The recipe flow graph corpus.
    options : ParserOptions, optional
    progress : callable, optional
        Called as (what is done, done, total).
    """
    options, data = options or ParserOptions(), Path(data)
    recipes = read_recipes(data, options.split)
    sentences = sum(len(recipe.sentences) for recipe in recipes)
    parser_options: dict[str, dict[str, Any]] = {
        LEARNED: {} if options.weights is None else {"weights": options.weights},
        "rules": {} if options.model is None else {"model": options.model},
    }
    graphs = ParsedGraphs(options.parsers, parser_options)
    held_out = ParsedGraphs(options.parsers, parser_options, held_out=True)
    unavailable: dict[str, str] = {}
    report = Report(
        "parser",
        f"parsers: {len(recipes)} recipes with {sentences} sentences (recipe flow graph corpus, {options.split})",
        "graph2vid-parser-evaluation",
    )
    report.document = {
        "unit": "share",
        "split": options.split,
        "recipes": len(recipes),
        "sentences": sentences,
        "bootstrap": {"level": LEVEL, "samples": SAMPLES, "over": "recipes"},
        **dict.fromkeys(("tagger", "edges", "graphs", CAPTAINCOOK4D, "precedence", CROSSTASK)),
        "not_available": unavailable,
    }
    if LEARNED in options.parsers:
        with _noting(unavailable, ENTITY_MODEL, unless=options.weights is not None):
            _add_entities(report, score_entities(load_entity_model(options.weights), recipes, progress))
        yield report

    found = score_graphs(held_out, recipe_texts(recipes), progress)
    speed = {
        name: held_out.texts[name] / held_out.seconds[name] if held_out.seconds[name] else math.nan for name in found
    }
    note = (
        f"Against the annotated graphs, one node per sentence. Edges: transitively reduced; precedences: all pairs in "
        f"the closure. Micro averages; in brackets {LEVEL:.0%} intervals over recipes."
    )
    report.tables += [_graph_table("Graphs over sentences", found, note, speed), *_above_table(found)]
    report.document["graphs"] = {
        name: row | {"recipes_per_second": speed[name]} for name, row in scores_to_json(found).items()
    }
    yield report

    texts: list[Text] = []
    with _noting(unavailable, CAPTAINCOOK4D, unless=options.captaincook4d is not None):
        texts = expert_texts(captaincook4d.load(_beside(data, CAPTAINCOOK4D, options.captaincook4d)))
    if experts := score_graphs(held_out, texts, progress) if texts else {}:
        note = (
            f"{len(texts)} recipes. These graphs come without a text: the steps are listed in the topological order "
            "that always takes the first node of the file that is ready, so that the listed order finds every "
            "precedence by construction."
        )
        report.tables.append(_graph_table("Agreement with expert graphs (CaptainCook4D)", experts, note, {}))
        report.document[CAPTAINCOOK4D] = {"texts": len(texts), "graphs": scores_to_json(experts)}
        yield report

    report.document["precedence"] = of_texts = {}
    for name, read, parsed, note in (
        (WIKIHOW_FG, read_wikihow_fg, graphs, "Articles of wikiHow by domain; nothing was fitted on them."),
        (ASYNCHOW, read_asynchow, held_out, "Everyday tasks; auto by the network that was trained without the task."),
    ):
        with _noting(unavailable, name, unless=getattr(options, name) is not None):
            how_tos = read(_beside(data, name, getattr(options, name)))
            precedence = precedence_scores(parsed, how_tos, progress)
            of_texts[name] = precedence_json(precedence)
            note = f"{len(how_tos)} how-tos. {note} All pairs in the closure; micro averages, in percent."
            report.tables.append(precedence_table(f"Precedence ({name})", note, precedence, _ordered(graphs.parsers)))
            yield report

    with _noting(unavailable, CROSSTASK, unless=options.crosstask is not None):
        executions = compare_with_executions(read_executions(_beside(data, CROSSTASK, options.crosstask)), graphs)
        report.document[CROSSTASK] = executions.to_json()
        report.tables += _execution_tables(executions)
    report.document["not_available"] = missing = held_out.unavailable | graphs.unavailable | unavailable
    report.notes = [f"{name} not available: {why}" for name, why in missing.items()]
    report.is_complete = True
    yield report


def _add_entities(report: Report, entities: EntityScores) -> None:
    report.tables += [_tag_table(entities.tagger), _edge_table(entities), _label_table(entities.gold_tags)]
    report.document["tagger"] = entities.tagger.to_json()
    report.document["edges"] = {
        "gold_tags": entities.gold_tags.to_json(),
        "predicted_tags": entities.predicted_tags.to_json(),
    }


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
    from graph2vid.text.learned import RecipeModel

    found: EntityModel = RecipeModel.load(None if weights is None else Path(weights))
    return found


def _beside(data: Path, name: str, given: str | os.PathLike[str] | None) -> Path:
    """Return the folder that was given, or the one beside the corpus."""
    if given is not None:
        return Path(given)
    sibling = data.resolve().parent / _SIBLINGS[name]
    if not sibling.is_dir():
        raise InputError(f"there is no folder {sibling.name} beside the corpus; --{name} DIR says where it is")
    return sibling


# -- tables --------------------------------------------------------------------------------------


def _tag_table(tagger: TagScores) -> Table:
    rows = [(name, *_shares(counts)) for name, counts in ({"all": total(tagger.overall)} | tagger.classes).items()]
    note = "Entities: right when span and class are. In percent."
    return Table("Tagger", note, ("class", *_PRF), tuple(rows))


def _edge_table(entities: EntityScores) -> Table:
    rows = []
    of_tags = (("annotated", entities.gold_tags), ("predicted", entities.predicted_tags))
    for tags, scores in of_tags:
        for what, counts in (
            ("labelled", scores.labelled),
            ("unlabelled", scores.unlabelled),
            ("co-reference (f-eq of a pronoun)", scores.coreference),
            ("ellipsis (t from action to action)", scores.ellipsis),
        ):
            rows.append((f"{tags} tags", what, *_shares(total(counts))))
    note = "An edge is right when both entities (exact spans) and, where it counts, the label agree. In percent."
    attachment = "; ".join(f"{tags} tags UAS {_attachment(scores)}" for tags, scores in of_tags)
    note += f" Over all tokens, by their primary head (none outside entities): {attachment}."
    return Table("Edges between entities", note, ("tags", "edges", *_PRF), tuple(rows), words=2)


def _label_table(scores: EdgeScores) -> Table:
    by_number = sorted(scores.labels.items(), key=lambda item: -item[1].gold)
    rows = tuple((label, *_shares(counts)) for label, counts in by_number)
    return Table("Edges by label", "With annotated tags. In percent.", ("label", *_PRF), rows)


def _graph_table(title: str, found: dict[str, GraphScores], note: str, speed: dict[str, float]) -> Table:
    document = scores_to_json(found)
    rows = []
    for name in _ordered(document):
        row = document[name]
        shown = [name]
        for what in ("edge", "precedence"):
            low, high = row[f"{what}_f1_interval"]
            shown += [
                _percent(row[f"{what}_precision"]),
                _percent(row[f"{what}_recall"]),
                cells.span(*(100 * share for share in (row[f"{what}_f1"], low, high))),
            ]
        if speed:
            shown.append("—" if math.isnan(speed[name]) else f"{speed[name]:,.0f}")
        rows.append(tuple(shown))
    columns = ("parser", "edge P", "R", "F1", "precedence P", "R", "F1", *(("recipes/s",) if speed else ()))
    return Table(title, f"{note} In percent.", columns, tuple(rows))


def _above_table(found: dict[str, GraphScores]) -> list[Table]:
    document = scores_to_json(found)
    rows = []
    for name in _ordered(document):
        above = [document[name].get(f"{what}_f1_above_{BASELINE}") for what in ("edge", "precedence")]
        if None not in above:
            rows.append((f"{name} - {BASELINE}", *(_signed(one) for one in above if one is not None)))
    note = f"F1 over sentences, in points, with paired {LEVEL:.0%} intervals over recipes."
    columns = ("difference", "edge F1", "precedence F1")
    return [Table("Above the listed order", note, columns, tuple(rows))] if rows else []


def _execution_tables(results: ExecutionResults) -> list[Table]:
    document = results.to_json()
    sources = {name: document["sources"][name] for name in _ordered(document["sources"])}
    overall = tuple(
        (
            name,
            _percent(row["admitted"]),
            _percent(row["admitted_of_two"]),
            _percent(row["admitted_mean_of_tasks"]),
            cells.bounded_count(row["sorts_median"], row["sorts_median_lower"], row["sorts_median_upper"]),
            "—" if row["bag_sorts_ratio"] is None else f"{cells.count(row['bag_sorts_ratio'])}×",
            *(_percent(row["pairs"][name]) for name in ("precision", "recall", "f1")),
        )
        for name, row in sources.items()
    )
    by_task = tuple(
        (
            task["title"] or task["task"],
            str(task["executions"]),
            *(_task_cell(task["sources"].get(source)) for source in sources),
        )
        for task in document["tasks"]
    )
    return [
        Table(
            "Real executions (CrossTask procedures)",
            f"{document['executions']:,} annotated videos of {document['tasks_count']} tasks. Admitted: the share "
            "of videos whose order of first occurrences the graph allows, in percent; of all videos, of the "
            f"{document['executions_of_two']:,} that show at least two instructions, and as a mean of tasks. The "
            "dataset's own list of steps, taken as an order, admits "
            f"{_percent(document['step_list_admitted'])}%. Sorts: median number of orders over tasks, and how "
            "many times fewer than the bag's. Pairs: precedences of the graph against the pairs of instructions "
            f"that at least {MIN_SUPPORT} videos show and none violates.",
            ("graph", "admitted", "of 2+", "mean", "sorts", "bag/sorts", "pairs P", "R", "F1"),
            overall,
        ),
        Table(
            "Real executions by task",
            "Share admitted in percent / number of sorts.",
            ("task", "videos", *sources),
            by_task,
        ),
    ]


# -- cells -------------------------------------------------------------------------------------------------------


def _ordered(names: Iterable[str]) -> list[str]:
    """Return the sources from the strictest to the freest, others in between."""
    middle = _ORDER.index("manual")
    return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else middle, name))


def _percent(share: float | None) -> str:
    return cells.percent(None if share is None else 100 * share)


def _shares(counts: Counts) -> tuple[str, ...]:
    return _percent(counts.precision), _percent(counts.recall), _percent(counts.f1), str(counts.gold)


def _attachment(scores: EdgeScores) -> str:
    found = scores.to_json()
    return f"{_percent(found['uas'])}, LAS {_percent(found['las'])}"


def _signed(above: dict[str, Any]) -> str:
    return cells.signed_span(*(100 * share for share in (above["mean"], *above["interval"])))


def _task_cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "—"
    return f"{_percent(row['admitted'])} / {cells.bounded_count(row['sorts'], row['sorts_lower'], row['sorts_upper'])}"
