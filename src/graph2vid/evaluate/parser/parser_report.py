"""What judging the parsers found, for people (terminal, Markdown; percent) and for programs (JSON; shares)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from graph2vid import __version__
from graph2vid.evaluate.parser.entity_scores import EdgeFigures, EntityFigures
from graph2vid.evaluate.parser.executions import MIN_SUPPORT, ExecutionFigures
from graph2vid.evaluate.parser.graph_scores import BASELINE, GraphFigures, figures_to_json
from graph2vid.evaluate.parser.scores import LEVEL, SAMPLES, Counts, total
from graph2vid.evaluate.tables import Table, section_into_page, without_nan

ENTITY_MODEL = "entity model"
NAME = "parser"

_ORDER = ("linear", "rules", "learned", "manual", "bag")
_PRF = ("precision", "recall", "F1")


@dataclass(frozen=True)
class ParserReport:
    """The figures.

    Attributes
    ----------
    split : str
        Of the corpus.
    recipes, sentences : int
        How many there are in it.
    entities : EntityFigures or None
        Of the tagger and the edge parser; None where they are not available.
    graphs : dict of str to GraphFigures
        By parser: graphs over the sentences of the corpus.
    speed : dict of str to float
        By parser: recipes per second, loading left out; NaN where only one was parsed.
    experts : dict of str to GraphFigures
        By parser: graphs over the steps of recipes that experts made graphs for; empty where these are not there.
    expert_texts : int
        How many of them there are.
    executions : ExecutionFigures or None
        Graphs of the CrossTask procedures, judged by what people do.
    unavailable : dict of str to str
        What could not be judged, and why.
    command : str
        What repeats this.
    seconds : float
        How long it took.
    """

    split: str
    recipes: int
    sentences: int
    entities: EntityFigures | None
    graphs: dict[str, GraphFigures]
    speed: dict[str, float]
    experts: dict[str, GraphFigures] = field(default_factory=dict)
    expert_texts: int = 0
    executions: ExecutionFigures | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
    command: str = ""
    seconds: float = 0.0

    def timed(self, seconds: float) -> ParserReport:
        """Return the report with its time."""
        return replace(self, seconds=seconds)

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON document; all measures are shares, what is not defined is null."""
        entities = self.entities
        graphs = figures_to_json(self.graphs)
        document = {
            "format": "graph2vid-parser-evaluation",
            "version": 1,
            "graph2vid": __version__,
            "dataset": NAME,
            "command": self.command,
            "unit": "share",
            "split": self.split,
            "recipes": self.recipes,
            "sentences": self.sentences,
            "bootstrap": {"level": LEVEL, "samples": SAMPLES, "over": "recipes"},
            "tagger": None if entities is None else entities.tagger.to_json(),
            "edges": None
            if entities is None
            else {"gold_tags": entities.gold_tags.to_json(), "predicted_tags": entities.predicted_tags.to_json()},
            "graphs": {name: row | {"recipes_per_second": self.speed[name]} for name, row in graphs.items()},
            "captaincook4d": {"texts": self.expert_texts, "graphs": figures_to_json(self.experts)}
            if self.experts
            else None,
            "crosstask": None if self.executions is None else self.executions.to_json(),
            "not_available": self.unavailable,
            "seconds": self.seconds,
        }
        plain: dict[str, Any] = without_nan(document)
        return plain

    # -- tables --------------------------------------------------------------------------------------------

    def headline(self) -> str:
        """Say what was judged, on how much, in one line."""
        return (
            f"parsers: {self.recipes} recipes with {self.sentences} sentences (recipe flow graph corpus, {self.split})"
        )

    def tables(self) -> list[Table]:
        """Return all tables."""
        made = []
        if self.entities is not None:
            made += [self._tag_table(), self._edge_table(), self._label_table()]
        made.append(
            self._graph_table(
                "Graphs over sentences",
                self.graphs,
                f"Against the annotated graphs, one node per sentence. Edges: transitively reduced; precedences: all "
                f"pairs in the closure. Micro averages; in brackets {LEVEL:.0%} intervals over recipes.",
                self.speed,
            )
        )
        made += self._above_table()
        if self.experts:
            made.append(
                self._graph_table(
                    "Agreement with expert graphs (CaptainCook4D)",
                    self.experts,
                    f"{self.expert_texts} recipes. These graphs come without a text: the steps are listed in the "
                    "topological order that always takes the first node of the file that is ready, so that the listed "
                    "order finds every precedence by construction.",
                    {},
                )
            )
        if self.executions is not None:
            made += self._execution_tables(self.executions)
        return made

    def _tag_table(self) -> Table:
        assert self.entities is not None
        tagger = self.entities.tagger
        rows = [("all", *_shares(total(tagger.overall)), str(total(tagger.overall).gold))]
        rows += [(name, *_shares(counts), str(counts.gold)) for name, counts in tagger.classes.items()]
        note = "Entities: right when span and class are. In percent."
        return Table("Tagger", note, ("class", *_PRF, "annotated"), tuple(rows))

    def _edge_table(self) -> Table:
        assert self.entities is not None
        rows = []
        for tags, figures in (("annotated", self.entities.gold_tags), ("predicted", self.entities.predicted_tags)):
            for what, counts in (
                ("labelled", figures.labelled),
                ("unlabelled", figures.unlabelled),
                ("co-reference (f-eq of a pronoun)", figures.coreference),
                ("ellipsis (t from action to action)", figures.ellipsis),
            ):
                rows.append((f"{tags} tags", what, *_shares(total(counts)), str(total(counts).gold)))
        note = "An edge is right when both entities (exact spans) and, where it counts, the label agree. In percent."
        attachment = "; ".join(
            f"{tags} tags UAS {_attachment(figures)}"
            for tags, figures in (("annotated", self.entities.gold_tags), ("predicted", self.entities.predicted_tags))
        )
        note += f" Over all tokens, by their primary head (none outside entities): {attachment}."
        return Table("Edges between entities", note, ("tags", "edges", *_PRF, "annotated"), tuple(rows), words=2)

    def _label_table(self) -> Table:
        assert self.entities is not None
        figures = self.entities.gold_tags
        by_number = sorted(figures.labels.items(), key=lambda item: -item[1].gold)
        rows = tuple((label, *_shares(counts), str(counts.gold)) for label, counts in by_number)
        return Table("Edges by label", "With annotated tags. In percent.", ("label", *_PRF, "annotated"), rows)

    @staticmethod
    def _graph_table(title: str, found: dict[str, GraphFigures], note: str, speed: dict[str, float]) -> Table:
        document = figures_to_json(found)
        rows = []
        for name in _ordered(document):
            row = document[name]
            cells = [name]
            for what in ("edge", "precedence"):
                low, high = row[f"{what}_f1_interval"]
                cells += [
                    _percent(row[f"{what}_precision"]),
                    _percent(row[f"{what}_recall"]),
                    f"{_percent(row[f'{what}_f1'])} [{_percent(low)}, {_percent(high)}]",
                ]
            if speed:
                cells.append("—" if math.isnan(speed[name]) else f"{speed[name]:,.0f}")
            rows.append(tuple(cells))
        columns = ("parser", "edge P", "R", "F1", "precedence P", "R", "F1", *(("recipes/s",) if speed else ()))
        return Table(title, f"{note} In percent.", columns, tuple(rows))

    def _above_table(self) -> list[Table]:
        document = figures_to_json(self.graphs)
        rows = []
        for name in _ordered(document):
            above = [document[name].get(f"{what}_f1_above_{BASELINE}") for what in ("edge", "precedence")]
            if None not in above:
                rows.append((f"{name} - {BASELINE}", *(_signed(found) for found in above if found is not None)))
        note = f"F1 over sentences, in points, with paired {LEVEL:.0%} intervals over recipes."
        columns = ("difference", "edge F1", "precedence F1")
        return [Table("Above the listed order", note, columns, tuple(rows))] if rows else []

    @staticmethod
    def _execution_tables(figures: ExecutionFigures) -> list[Table]:
        document = figures.to_json()
        sources = {name: document["sources"][name] for name in _ordered(document["sources"])}
        overall = tuple(
            (
                name,
                _percent(row["admitted"]),
                _percent(row["admitted_of_two"]),
                _percent(row["admitted_mean_of_tasks"]),
                _count(row["sorts_median"], row["sorts_median_lower"], row["sorts_median_upper"]),
                "—" if row["bag_sorts_ratio"] is None else f"{_count(row['bag_sorts_ratio'])}×",
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

    # -- Markdown ------------------------------------------------------------------------------------------

    def to_markdown(self) -> str:
        """Return the section for a page of results."""
        lines = [f"## {NAME}", "", f"    {self.command}", "", f"{self.headline()}.", ""]
        lines += [f"{line}\n" for line in self.missing()]
        lines += [table.to_markdown() for table in self.tables()]
        return "\n".join(lines)

    def missing(self) -> list[str]:
        """Say what is not available, one line each."""
        return [f"{name} not available: {why}" for name, why in self.unavailable.items()]

    def into_page(self, page: str) -> str:
        """Return a page of results with this section put in or replaced."""
        return section_into_page(page, NAME, self.to_markdown())


# -- cells -------------------------------------------------------------------------------------------------------


def _ordered(names: Iterable[str]) -> list[str]:
    """Return the sources from the strictest to the freest, others in between."""
    middle = _ORDER.index("manual")
    return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else middle, name))


def _percent(share: float | None) -> str:
    return "—" if share is None or math.isnan(share) else f"{100 * share:.1f}"


def _shares(counts: Counts) -> tuple[str, str, str]:
    return _percent(counts.precision), _percent(counts.recall), _percent(counts.f1)


def _attachment(figures: EdgeFigures) -> str:
    found = figures.to_json()
    return f"{_percent(found['uas'])}, LAS {_percent(found['las'])}"


def _signed(above: dict[str, Any]) -> str:
    low, high = above["interval"]
    return f"{100 * above['mean']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _count(value: float | None, lower: float = 0, upper: float = 0) -> str:
    if value is None:
        return f"{_count(lower)} … {_count(upper)}"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def _task_cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "—"
    return f"{_percent(row['admitted'])} / {_count(row['sorts'], row['sorts_lower'], row['sorts_upper'])}"
