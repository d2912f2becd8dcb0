"""Flow graphs from executions in files or groundings, and what the words say beforehand."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import parse_json, read_json, read_text
from graph2vid._values import number_of
from graph2vid.errors import FormatError, InputError
from graph2vid.flow import BOOTSTRAP, Execution, ExecutionModel, FlowGraph, Mined, mine_executions, quoted
from graph2vid.grounding.durations_file import KIND as DURATIONS
from graph2vid.grounding.durations_file import VERSION as DURATIONS_VERSION
from graph2vid.grounding.grounding_result import KIND as GROUNDING
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.text import Instruction, Parse, Procedure, is_flow_file, parse, read_procedure

TEXT_WEIGHT = 0.5
"""What a reason in the words is worth, in units of log-likelihood."""
DRAWS = 8
"""Executions that are drawn from a grounding."""
_WRITTEN = "written order"
_LEAST_SPREAD = 0.25  # of durations: few executions are alike by chance


def text_prior(parse: Parse, weight: float = TEXT_WEIGHT) -> NDArray[np.float64]:
    """Return what the words say for each edge, for :func:`graph2vid.flow.mine_executions`, [n, n].

    Where a parser found a reason in the words why a step comes before another, the probability of that precedence times
    the weight; elsewhere 0. The written order alone says nothing here: executions show it.
    """
    if parse.probabilities is None:
        raise InputError(f"the parser {parse.parser!r} gives no probabilities of precedences: use auto")
    worth = np.zeros((len(parse.procedure),) * 2)
    for reason in parse.reasons:
        if reason.rule != _WRITTEN:
            worth[reason.before, reason.after] = weight * float(parse.probabilities[reason.before, reason.after])
    return worth


def executions_of(grounding: Grounding, draws: int = DRAWS, seed: int = 0, source: str = "") -> list[Execution]:
    """Return executions drawn from what a grounding holds probable; together they count as one, called ``source``.

    Each draw has each segment with the probability that it is right: its confidence, or its posterior where there is no
    calibrator, or 1 where neither is known. A grounding without doubts gives one execution.
    """
    chances = []
    for segment in grounding.segments:
        known = segment.posterior if segment.confidence is None else segment.confidence
        chances.append(1.0 if known is None else known)
    random = np.random.default_rng(seed)
    rows = (
        [np.ones(len(chances), bool)]
        if min(chances, default=1.0) >= 1
        else random.random((draws, len(chances))) < chances
    )
    segments = [(segment.id, segment.start, segment.end) for segment in grounding.segments]
    kept = [tuple(one for one, is_kept in zip(segments, row, strict=True) if is_kept) for row in rows]
    return [Execution(some, 1 / len(rows), source=source or f"grounding {seed}") for some in kept if some]


def read_executions(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Execution], FlowGraph | None]:
    """Read executions from files; return them, and the procedure where groundings say it.

    Parameters
    ----------
    paths : iterable of paths
        Groundings (``graph2vid ground -o``); JSON: a list of executions, each a list of steps by id, or of
        [step, start, end] in seconds; CSV with the columns ``recording``, ``step`` and, if times are known, ``start``
        and ``end``. A CSV file without the column ``recording`` is one execution.
    """
    found: list[Execution] = []
    flow: FlowGraph | None = None
    for number, path in enumerate(paths):
        source = os.fspath(path)
        if source.lower().endswith(".csv"):
            found += _from_table(read_text(path), source)
            continue
        value = read_json(path)
        if isinstance(value, dict) and value.get("format") == GROUNDING:
            grounding = Grounding.from_json(value, source=source)
            if flow is not None and flow.ids != grounding.flow.ids:
                raise InputError(f"{source}: this is a grounding of other steps than those before it")
            flow = grounding.flow
            found += executions_of(grounding, seed=number, source=f"{number}: {source}")
        else:
            found += _from_list(value, source)
    if not found:
        raise InputError("there are no executions in the files: there is nothing to mine")
    return found, flow


def _from_list(value: Any, source: str) -> list[Execution]:
    if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
        raise FormatError(f"{source}: there should be a grounding, or a list of executions, each a list of steps")
    return [_execution(row, f"{source}, execution {number}") for number, row in enumerate(value, start=1) if row]


def _execution(row: list[Any], where: str) -> Execution:
    if all(isinstance(step, str) for step in row):
        return Execution.of(row)
    segments = []
    for entry in row:
        if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str)):
            raise FormatError(f"{where}: a step is its id, or [id, start, end], not {quoted(entry)}; all alike")
        segments.append(_segment(entry[0], entry[1], entry[2], where))
    return Execution(tuple(segments))


def _segment(step: str, start: Any, end: Any, where: str) -> tuple[str, float, float]:
    times = [number_of(time, f"{where}, step {quoted(step)}", least=0.0) for time in (start, end)]
    if times[0] > times[1]:
        raise FormatError(f"{where}, step {quoted(step)}: it ends at {times[1]:g} s, before it starts ({times[0]:g} s)")
    return step, times[0], times[1]


def _from_table(text: str, source: str) -> list[Execution]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    columns = set(rows.fieldnames or ())
    if "step" not in columns or ("start" in columns) != ("end" in columns):
        raise FormatError(f"{source}, line 1: there should be a column step, and both or none of start and end")
    by_recording: dict[str, list[Any]] = {}
    for line in rows:
        where = f"{source}, line {rows.line_num}"
        if not line["step"]:
            raise FormatError(f"{where}: there is no step")
        entry = line["step"]
        if "start" in columns:
            times = [parse_json(line[key] or '""', f"{where}, {key}") for key in ("start", "end")]
            entry = [line["step"], *times]
        by_recording.setdefault(line.get("recording") or "", []).append(entry)
    return [_execution(row, f"{source}, recording {quoted(name)}") for name, row in by_recording.items()]


def mine_files(
    paths: Iterable[str | os.PathLike[str]],
    procedure: str | os.PathLike[str] | None = None,
    *,
    words: bool = True,
    model: ExecutionModel | None = None,
    bootstrap: int = BOOTSTRAP,
) -> Mined:
    """Mine the flow graph of the executions in files.

    Parameters
    ----------
    paths : iterable of paths
        As for :func:`read_executions`. Steps are named by id or by text.
    procedure : path, optional
        The procedure, as a text or a flow graph, of which only the steps count; by default that of the groundings, or
        the steps that occur.
    words : bool
        Whether what the words of the procedure say is a prior (:func:`text_prior`).
    model : ExecutionModel, optional
    bootstrap : int
        Draws behind the confidence of edges.
    """
    executions, flow = read_executions(paths)
    if procedure is not None:
        flow = FlowGraph.load(procedure) if is_flow_file(procedure) else parse(read_procedure(procedure), "linear").flow
    if flow is None:
        return mine_executions(executions, model=model, bootstrap=bootstrap)
    prior = None
    if words and procedure is not None:
        order = flow.topological_order
        found = parse(Procedure(tuple(Instruction(flow.texts[step]) for step in order), flow.title))
        at = np.argsort(order)
        prior = text_prior(found)[np.ix_(at, at)]
    named = _named_by_text(executions, flow)
    return mine_executions(named, flow.steps, model=model, prior=prior, bootstrap=bootstrap, title=flow.title)


def durations_document(mined: Mined) -> dict[str, Any]:
    """Return how long the steps of the executions last, as a file for ``ground --durations`` holds it."""
    steps = {
        mined.flow.ids[step]: {"median": median, "spread": max(spread, _LEAST_SPREAD)}
        for step, (median, spread) in mined.durations.items()
    }
    if not steps:
        raise InputError("the executions have no times: how long the steps last is not known")
    return {"format": DURATIONS, "version": DURATIONS_VERSION, "steps": steps}


def _named_by_text(executions: Sequence[Execution], flow: FlowGraph) -> list[Execution]:
    """Return executions with steps that are named by their text named by their id."""
    id_of = {text.casefold(): name for name, text in zip(flow.ids, flow.texts, strict=True)}
    known = set(flow.ids)

    def named(step: Any) -> Any:
        return step if step in known else id_of.get(str(step).casefold(), step)

    return [
        replace(one, segments=tuple((named(step), start, end) for step, start, end in one.segments))
        for one in executions
    ]
