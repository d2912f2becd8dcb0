"""Graphs mined from the executions of a recipe, compared with the graph that experts made of it (CaptainCook4D)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid._evaluation_options import MiningOptions
from graph2vid.datasets import Dataset, Recording, Task, captaincook4d
from graph2vid.evaluate import report as cells
from graph2vid.evaluate.counts import Counts, compare
from graph2vid.evaluate.intervals import Interval, bootstrap_interval
from graph2vid.evaluate.parser.graph_scores import expert_texts
from graph2vid.evaluate.report import Report, Table
from graph2vid.flow import Execution, ExecutionModel, FlowGraph, mine_executions, mine_precedences
from graph2vid.grounding import executions_of, ground, text_prior
from graph2vid.text import Instruction, Procedure, parse
from graph2vid.text.precedence import fold_of

EXPERT = "expert"
RULE, LIKELIHOOD, TEXT, CEILING = "graph:mined", "graph:executions", "graph:executions+text", "expert:unviolated"
FEW = 3
"""Executions of each recipe in the second part; drawn anew :data:`DRAWS` times."""
DRAWS = 3
GROUNDED = "graph:groundings@small"
MOST_STEPS = 12
"""Of recipes that are grounded with any order: a bag of more steps has too many orders."""

Setting: TypeAlias = tuple[ExecutionModel, float]
"""Of the likelihood, and the weight of the words."""

_KINDS: dict[str, Callable[[Recording], bool]] = {
    "error-free": lambda one: not one.notes.get("errors"),
    "plain": lambda one: not one.notes.get("skipped") and not one.notes.get("order_error"),
    "all": lambda _: True,
}
"""Recordings that are mined: those without any error, those without skipped steps and order errors, or all."""

_MODELS = [ExecutionModel(*values) for values in product((0.0, 2.0, 4.0), (0.001, 0.01), (1.0, 1.5))]
_WEIGHTS = (0.25, 0.5, 1.0)
"""Settings to choose from: each recipe has those that are best on the others."""


@dataclass
class _Recipe:
    """A recipe, some of its executions over the steps of the procedure, and what was found with each setting."""

    task: Task
    texts: Mapping[int, str]
    executions: list[Execution]
    prior: NDArray[np.float64] | None = None
    found: dict[Setting, FlowGraph] = field(default_factory=dict)

    def words(self) -> NDArray[np.float64]:
        """Return what the words say of each pair, of weight 1; the steps are written in the order of mean position."""
        if self.prior is None:
            order = self.mean_order()
            texts = [self.texts[step] for step in order]
            procedure, at = Procedure(tuple(map(Instruction, texts)), self.task.title), np.argsort(order)
            self.prior = text_prior(parse(procedure, "auto", fold=fold_of(texts)), 1.0)[np.ix_(at, at)]
        return self.prior

    def mean_order(self) -> list[int]:
        """Return the steps by their mean relative position, those that are never shown last."""
        places: dict[int, list[float]] = {}
        for one in self.executions:
            for place, segment in enumerate(one.segments):
                places.setdefault(int(segment[0]), []).append(place / max(len(one.segments) - 1, 1))
        return sorted(range(len(self.task.procedure)), key=lambda step: fmean(places.get(step, [2.0])))

    def mined(self, setting: Setting) -> FlowGraph:
        """Return the most probable graph."""
        if setting not in self.found:
            model, weight = setting
            prior = weight * self.words() if weight else None
            made = mine_executions(self.executions, self.task.procedure, model=model, prior=prior, bootstrap=0)
            self.found[setting] = made.flow
        return self.found[setting]

    def few(self, random: np.random.Generator) -> _Recipe:
        """Return the recipe with :data:`FEW` of its executions, or all where it has no more."""
        some = sorted(random.permutation(len(self.executions))[:FEW].tolist())
        return _Recipe(self.task, self.texts, [self.executions[at] for at in some])


def evaluate_mining(data: str | Path, options: MiningOptions | None = None) -> Iterator[Report]:
    """Compare mined graphs with those of experts; yield the report after each part.

    Nothing of the expert graphs is used in mining but which nodes a step stands for: where a step stands for several,
    its first occurrence is taken as the first of them, and so on. Settings of the likelihood, and the weight of the
    words, are for each recipe those that are best on all others; the words are read by the network of the parser
    ``auto`` that was not trained on the recipe.

    Parameters
    ----------
    data : path
        As for :func:`graph2vid.datasets.captaincook4d.load`.
    options : MiningOptions, optional
        Which recordings, and ``min_support`` and ``tolerance`` as for :meth:`graph2vid.FlowGraph.mine`.
    """
    options = options or MiningOptions()
    dataset = captaincook4d.load(data)
    kept = [recording for recording in dataset.recordings if _KINDS[options.recordings](recording)]
    recipes = []
    for task, text in zip(dataset.tasks.values(), expert_texts(dataset), strict=True):
        texts = dict(zip(task.flows[EXPERT].topological_order, text.texts, strict=True))
        executions = [_execution(one, task) for one in kept if one.task == task.id]
        if executions:
            recipes.append(_Recipe(task, texts, executions))
    report = Report(
        "mining",
        f"Graphs mined from {len(kept)} recordings ({options.recordings}) of {len(recipes)} recipes of captaincook4d, "
        f"compared with their expert graphs: {RULE} with min_support {options.min_support}, tolerance "
        f"{options.tolerance:g}",
        "graph2vid-mining-evaluation",
        document={"min_support": options.min_support, "tolerance": options.tolerance, "rows": []},
    )
    settings = _settings(recipes)
    methods = _methods(options, settings)
    scores = {name: [_compare(make(one, at), one) for at, one in enumerate(recipes)] for name, make in methods.items()}
    report.document["settings"] = {
        name: {
            one.task.title: [*vars(model).values(), weight] for one, (model, weight) in zip(recipes, of, strict=True)
        }
        for name, of in settings.items()
    }
    _add(report, {name: [of] for name, of in scores.items()}, len(kept), RULE, ("Mined graphs", _NOTE))
    yield report

    random = np.random.default_rng(0)
    drawn = [[one.few(random) for one in recipes] for _ in range(DRAWS)]
    few = {
        f"{name}@{FEW}": [[_compare(methods[name](one, at), one) for at, one in enumerate(some)] for some in drawn]
        for name in (RULE, LIKELIHOOD, TEXT)
    }
    title = f"Mined from {FEW} recordings of each recipe"
    _add(report, few, sum(len(one.executions) for one in drawn[0]), f"{LIKELIHOOD}@{FEW}", (title, _FEW_NOTE))
    yield report

    small = [at for at, one in enumerate(recipes) if len(one.task.procedure) <= MOST_STEPS]
    if small:
        grounded = {at: _grounded(recipes[at], dataset, kept) for at in small}
        both = {
            f"{LIKELIHOOD}@small": [[scores[LIKELIHOOD][at] for at in small]],
            GROUNDED: [[_compare(one.mined(settings[LIKELIHOOD][at]), one) for at, one in grounded.items()]],
        }
        number = sum(len(recipes[at].executions) for at in small)
        _add(report, both, number, f"{LIKELIHOOD}@small", ("Mined from groundings", _GROUNDED_NOTE))
    report.is_complete = True
    yield report


def _grounded(recipe: _Recipe, dataset: Dataset, recordings: Sequence[Recording]) -> _Recipe:
    """Return a recipe with executions drawn from groundings of its recordings, in which any order is legal."""
    flow = FlowGraph.bag(recipe.task.procedure)
    index_of = {name: step for step, name in enumerate(flow.ids)}
    drawn = []
    for number, one in enumerate(one for one in recordings if one.task == recipe.task.id):
        found = ground(flow, scores=dataset.evidence(one).similarity, clip_seconds=one.clip_seconds)
        for execution in executions_of(found, seed=number):
            segments = tuple((index_of[str(step)], start, end) for step, start, end in execution.segments)
            drawn.append(replace(execution, segments=segments))
    return _Recipe(recipe.task, recipe.texts, drawn)


def _execution(recording: Recording, task: Task) -> Execution:
    """Return a recording over the nodes of the graph: the next occurrence of a step is the next node with its text."""
    times: Counter[int] = Counter()
    segments = []
    for row in sorted(recording.annotations, key=lambda row: row.start):
        nodes = task.correspondence[row.step]
        if times[row.step] < len(nodes):
            segments.append((nodes[times[row.step]], row.start, row.end))
        times[row.step] += 1
    return Execution(tuple(segments))


def _settings(recipes: Sequence[_Recipe]) -> dict[str, list[Setting]]:
    """Return for each recipe the setting that is best on the others: without the words, and then their weight."""

    def best(of: Sequence[Setting], at: int) -> Setting:
        others = [one for place, one in enumerate(recipes) if place != at] or list(recipes)
        return max(of, key=lambda setting: fmean(_f1(one, setting) for one in others))

    alone = [best([(model, 0.0) for model in _MODELS], at) for at in range(len(recipes))]
    text = [best([(alone[at][0], weight) for weight in _WEIGHTS], at) for at in range(len(recipes))]
    return {LIKELIHOOD: alone, TEXT: text}


def _f1(recipe: _Recipe, setting: Setting) -> float:
    return _compare(recipe.mined(setting), recipe).f1


def _methods(
    options: MiningOptions, settings: Mapping[str, Sequence[Setting]]
) -> dict[str, Callable[[_Recipe, int], FlowGraph]]:
    """Return what makes the graph of a recipe, given also its number."""

    def rule(recipe: _Recipe, _: int) -> FlowGraph:
        orders = [[step for step, _, _ in one.segments] for one in recipe.executions]
        support, tolerance = options.min_support, options.tolerance
        return mine_precedences(orders, recipe.task.procedure, min_support=support, tolerance=tolerance).flow

    return {
        "bag": lambda recipe, _: FlowGraph.bag(recipe.task.procedure),
        "linear": lambda recipe, _: FlowGraph.from_edges(recipe.task.procedure, list(pairwise(recipe.mean_order()))),
        RULE: rule,
        LIKELIHOOD: lambda recipe, at: recipe.mined(settings[LIKELIHOOD][at]),
        TEXT: lambda recipe, at: recipe.mined(settings[TEXT][at]),
        CEILING: lambda recipe, _: _unviolated(recipe),
    }


def _unviolated(recipe: _Recipe) -> FlowGraph:
    """Return the graph of the experts without the pairs that executions contradict."""
    flow = recipe.task.flows[EXPERT].transitive_closure()
    contrary = set()
    for one in recipe.executions:
        spans: dict[int, tuple[float, float]] = {}
        for step, start, end in one.segments:
            spans.setdefault(int(step), (start, end))
        contrary |= {(b, a) for a in spans for b in spans if spans[a][1] <= spans[b][0]}
    return FlowGraph.from_edges(list(flow.steps), [edge for edge in flow.edges if edge not in contrary])


def _compare(flow: FlowGraph, recipe: _Recipe) -> Counts:
    """Count the edges of the reduced graphs, with those from START and to END; nodes of one step count as one."""
    step_of = {node: step for step, nodes in enumerate(recipe.task.correspondence) for node in nodes}

    def edges(of: FlowGraph) -> set[tuple[int | str, int | str]]:
        ends = [("START", step) for step in of.sources] + [(step, "END") for step in of.sinks]
        named = [(_named(a, step_of), _named(b, step_of)) for a, b in (*of.transitive_reduction().edges, *ends)]
        return {(a, b) for a, b in named if a != b}

    return compare(edges(flow), edges(recipe.task.flows[EXPERT]))


def _named(node: int | str, step_of: Mapping[int, int]) -> int | str:
    return node if isinstance(node, str) else step_of.get(node, f"node {node}")


def _add(
    report: Report,
    scores: Mapping[str, Sequence[Sequence[Counts]]],
    recordings: int,
    baseline: str,
    about: tuple[str, str],
) -> None:
    """Add a table, and its rows to the document; the scores are by method, draw and recipe."""
    f1 = {name: np.mean([[one.f1 for one in draw] for draw in draws], axis=0) for name, draws in scores.items()}
    shown = []
    for name, draws in scores.items():
        flat = [one for draw in draws for one in draw]
        precision, recall = (fmean(getattr(one, key) for one in flat) for key in ("precision", "recall"))
        mean = bootstrap_interval(f1[name])
        gain = bootstrap_interval(f1[name] - f1[baseline])
        report.document["rows"].append(
            {"method": name, "recordings": recordings, "recipes": len(draws[0])}
            | {"precision": precision, "recall": recall, "f1": mean.mean, "interval": [mean.low, mean.high]}
            | {"baseline": baseline, "gain": gain.mean, "gain_interval": [gain.low, gain.high]}
        )
        shares = (cells.percent(100 * precision), cells.percent(100 * recall))
        shown.append((name, recordings, *shares, _span(mean), "" if name == baseline else _span(gain, signed=True)))
    report.tables.append(Table(*about, (*_COLUMNS, f"F1 - {baseline}"), shown))


def _span(of: Interval, *, signed: bool = False) -> str:
    mean, low, high = (f"{100 * value:{'+' if signed else ''}.1f}" for value in (of.mean, of.low, of.high))
    return f"{mean} [{low}, {high}]"


_NOTE = (
    "Edges of the transitively reduced graphs, with those from START and to END; means over recipes, in percent; in "
    f"brackets 95% intervals over recipes. {LIKELIHOOD}: the most probable graph given the executions; {TEXT}: with "
    f"what the words say as prior; {CEILING}: the graph of the experts without the pairs that executions contradict. "
    "Nodes with the same text count as one."
)
_FEW_NOTE = f"Each recipe with {FEW} of its recordings, means over {DRAWS} draws; settings as above."
_GROUNDED_NOTE = (
    f"Recipes of at most {MOST_STEPS} steps; {GROUNDED}: from groundings of the same recordings with any order legal, "
    "the evidence simulated (noise 3)."
)
_COLUMNS = ("method", "recordings", "P", "R", "F1")
