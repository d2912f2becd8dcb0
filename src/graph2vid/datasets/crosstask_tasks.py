"""What CrossTask says about its tasks: their steps, how-to texts, and flow graphs over these.

``tasks_primary.txt`` and ``tasks_related.txt``; ``procedures.json`` with instructions, the instructions of each step,
and durations; flow graphs in the published form; and the flow graphs that come with graph2vid, made by hand.

The published form is a list of ``{"recipe_type": TASK, "recipe": {"instructions": [text, …], "edges": [[a, b], …],
"recipe_2_caption": [[instruction, step], …]}}``, all numbers counted from 0 and step -1 for an instruction that stands
for no step of the dataset; ``"predicted_edges"``, in the recipe or beside it, are those of a learned parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

from graph2vid._files import check_format, read_json
from graph2vid._values import count_of
from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import HowTo
from graph2vid.datasets.reader_tools import Trouble, entry
from graph2vid.errors import FormatError
from graph2vid.flow import FlowGraph, surest

FLOW_FILE = "flow_graphs.json"
TASK_LISTS = ("tasks_primary.txt", "tasks_related.txt")
SUB_FOLDERS = ("crosstask_release", "crosstask_procedures", "crosstask_narrated")
MANUAL_FILE = Path(__file__).with_name("crosstask_manual.json")
MANUAL_KIND = "graph2vid-crosstask-manual"
SOURCES = {"edges": "manual", "predicted_edges": "predicted"}


@dataclass(frozen=True)
class ListedTask:
    """A task as its list names it."""

    title: str
    steps: tuple[str, ...]


def places_of(data: Path) -> list[Path]:
    """Return the folders in which parts of the dataset may lie, nearest first."""
    near = [data, *(data / name for name in SUB_FOLDERS)]
    if data.name in SUB_FOLDERS:
        near += [data.parent / name for name in SUB_FOLDERS]
    return [place for place in dict.fromkeys(near) if place.is_dir()]


def find(places: list[Path], name: str) -> Path | None:
    """Return the first file or folder of that name in the places."""
    return next((place / name for place in places if (place / name).exists()), None)


def read_tasks(places: list[Path]) -> dict[str, ListedTask]:
    """Read the task lists: blocks of five lines (id, title, address, number of steps, steps)."""
    paths = [path for name in TASK_LISTS if (path := find(places, name)) is not None]
    if not paths:
        raise FormatError(f"{places[0]} has no task list ({' or '.join(TASK_LISTS)}), nor has {SUB_FOLDERS[0]}")
    listed: dict[str, ListedTask] = {}
    for path in paths:
        lines = tools.read_lines(path)
        for first in range(0, len(lines), 5):
            block = lines[first : first + 5]
            number = block[0][0]
            if len(block) < 5 or not block[0][1].isdecimal() or not block[3][1].isdecimal():
                five = "its number, title, address, number of steps, steps"
                raise FormatError(f"{path}, line {number}: a task is five lines: {five}")
            steps = tuple(step.strip() for step in block[4][1].split(","))
            if len(steps) != count_of(block[3][1], f"{path}, line {block[3][0]}: the number of steps"):
                raise FormatError(f"{path}, line {block[4][0]}: {len(steps)} steps where {block[3][1]} are announced")
            listed[block[0][1]] = ListedTask(block[1][1], tuple(step.replace("_", " ") for step in steps))
    return listed


def read_procedures(
    path: Path, listed: Mapping[str, ListedTask], trouble: Trouble
) -> tuple[dict[str, HowTo], dict[str, float]]:
    """Return the how-to texts by task, and the lengths of videos in seconds."""
    howtos: dict[str, HowTo] = {}
    durations: dict[str, float] = {}
    for number, record in enumerate(tools.read_document(path, list, "be a list of tasks")):
        with trouble.passing():
            task = str(entry(record, "task_id", (int, str), f"{path}, entry {number}"))
            where = f"{path}, task {task}"
            lengths = entry(record, "video_duration", dict, where) if "video_duration" in record else {}
            for video, seconds in lengths.items():
                durations[f"{task}_{video}"] = tools.as_number(seconds, where, f"the duration of {video}")
            if not record.get("instructions") or task not in listed:
                continue  # a task without a procedure matters only where it is used
            instructions = tuple(str(text) for text in entry(record, "instructions", list, where))
            rows = entry(record, "crosstask_step_to_instruction", list, where)
            if len(rows) != len(listed[task].steps):
                raise FormatError(f"{where}: {len(rows)} rows of instructions for {len(listed[task].steps)} steps")
            for step, row in enumerate(rows):
                if not isinstance(row, list) or any(type(i) is not int or not 0 <= i < len(instructions) for i in row):
                    named = f"instructions {row!r} of {len(instructions)} (counted from 0)"
                    raise FormatError(f"{where}: step {step} names {named}")
            howtos[task] = HowTo(instructions, tuple(tuple(row) for row in rows))
    return howtos, durations


def add_published(
    path: Path, listed: Mapping[str, ListedTask], howtos: dict[str, HowTo], trouble: Trouble, *, beside: bool = False
) -> None:
    """Let published flow graphs take the place of how-to texts, or stand ``beside`` those of other files."""
    own = "" if path.name == FLOW_FILE else path.stem
    for task, flow in read_published_flows(path).items():
        if task not in listed:
            continue
        with trouble.passing():
            where = f"{path}, task {task}"
            rows = flow.correspondence(len(listed[task].steps), where)
            known = howtos.get(task)
            flows = {own or SOURCES["edges"]: flow.flows[SOURCES["edges"]]}
            if (predicted := SOURCES["predicted_edges"]) in flow.flows:
                flows[f"{own}-{predicted}" if own else predicted] = flow.flows[predicted]
            if beside and known is not None:
                if known.instructions != flow.instructions:
                    raise FormatError(f"{where}: the instructions differ from those of the other files of flow graphs")
                howtos[task] = replace(known, flows={**known.flows, **flows})
                continue
            if not flow.step_of and known is not None and len(known.instructions) == len(flow.instructions):
                rows = known.correspondence
            howtos[task] = HowTo(flow.instructions, rows, flows)


def add_manual(howtos: dict[str, HowTo], remarks: list[str]) -> None:
    """Add the graphs made by hand as "manual", where a task has none of that name and the instructions are as many."""
    document = check_format(read_json(MANUAL_FILE), kind=MANUAL_KIND, version=1, source=str(MANUAL_FILE))
    for task, graph in entry(document, "tasks", dict, str(MANUAL_FILE)).items():
        howto = howtos.get(task)
        if howto is None or "manual" in howto.flows:
            continue
        where = f"{MANUAL_FILE}, task {task}"
        count = entry(graph, "instructions", int, where)
        if count != len(howto.instructions):
            left_out = f"is of {count} instructions and is left out: here it has {len(howto.instructions)}"
            remarks.append(f"task {task}: its graph made by hand {left_out}")
            continue
        edges = pairs_of(entry(graph, "edges", list, where), "edges", where)
        flow = tools.flow_graph(howto.instructions, edges, "", where)
        howtos[task] = replace(howto, flows={**howto.flows, "manual": flow})


@dataclass(frozen=True)
class PublishedFlow:
    """The instructions of one task, its graphs by source, and which dataset step each instruction stands for.

    Attributes
    ----------
    instructions : tuple of str
    flows : mapping of str to FlowGraph
        "manual" and, where there is one, "predicted".
    step_of : tuple of (int, int)
        Pairs (instruction, dataset step).
    """

    instructions: tuple[str, ...]
    flows: Mapping[str, FlowGraph]
    step_of: tuple[tuple[int, int], ...]

    def correspondence(self, n_steps: int, where: str) -> tuple[tuple[int, ...], ...]:
        """Return for each of the ``n_steps`` dataset steps its instructions."""
        found: list[list[int]] = [[] for _ in range(n_steps)]
        for instruction, step in self.step_of:
            if step >= n_steps:
                raise FormatError(f"{where}: instruction {instruction} stands for step {step} of {n_steps}")
            found[step].append(instruction)
        return tuple(tuple(sorted(set(instructions))) for instructions in found)


def read_published_flows(path: str | Path) -> dict[str, PublishedFlow]:
    """Read a file of flow graphs in the published form, by task id."""
    tasks: dict[str, PublishedFlow] = {}
    for number, record in enumerate(tools.read_document(Path(path), list, "be a list of tasks with their recipes")):
        task = str(entry(record, "recipe_type", (str, int), f"{path}, entry {number}"))
        where = f"{path}, task {task}"
        if task in tasks:
            raise FormatError(f"{where} is there twice")
        tasks[task] = _read_recipe(entry(record, "recipe", dict, where), record, where)
    return tasks


def _read_recipe(recipe: dict[str, Any], record: dict[str, Any], where: str) -> PublishedFlow:
    instructions = entry(recipe, "instructions", list, where)
    if not instructions or not all(isinstance(text, str) for text in instructions):
        raise FormatError(f"{where}: the instructions must be texts, and there must be one")
    pairs = {"edges": entry(recipe, "edges", list, where)}
    for holder in (recipe, record):
        if "predicted_edges" in holder:
            pairs["predicted_edges"] = entry(holder, "predicted_edges", list, where)
    title = str(recipe.get("title", ""))
    flows = {
        SOURCES[key]: tools.flow_graph(instructions, pairs_of(edges, key, where), title, f"{where}, {key}")
        for key, edges in pairs.items()
    }
    step_of = []
    for instruction, step in pairs_of(recipe.get("recipe_2_caption", []), "recipe_2_caption", where):
        if not 0 <= instruction < len(instructions):
            raise FormatError(f"{where}: there is no instruction {instruction} in recipe_2_caption")
        if step >= 0:  # -1: it stands for none
            step_of.append((instruction, step))
    return PublishedFlow(tuple(instructions), flows, tuple(step_of))


def pairs_of(value: Any, key: str, where: str) -> list[tuple[int, int]]:
    """Return a list of pairs of whole numbers."""
    if isinstance(value, dict):  # {"instruction": step} says the same
        value = [[count_of(a, f"{where}: {key}") if a.isdecimal() else a, b] for a, b in value.items()]
    pairs = []
    for pair in value if isinstance(value, list) else [value]:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
            raise FormatError(f"{where}: {key} must be pairs of whole numbers, not {pair!r}")
        pairs.append((pair[0], pair[1]))
    return pairs


def onto_steps(flow: FlowGraph, correspondence: Sequence[Sequence[int]], steps: Sequence[str]) -> FlowGraph:
    """Return what a flow graph over instructions says about the steps that these instructions stand for.

    A step comes before another when some instruction of it must come before some instruction of the other, and none
    the other way round. Steps without an instruction, and steps that share all of theirs, stay free. Pairs that
    would close a cycle, which steps of several instructions can, are left out in the order of the steps. A soft edge
    between steps is as sure as the surest between their instructions, less the surest the other way round.

    Parameters
    ----------
    flow : FlowGraph
        Over the instructions.
    correspondence : sequence of sequences of int
        For each step its instructions: possibly none, possibly several.
    steps : sequence of str
        The steps.

    Returns
    -------
    FlowGraph
        Over the steps, certain edges transitively reduced.
    """
    certain = flow.sure
    earlier = [0] * len(steps)  # instructions that must come before some instruction of the step
    own = [0] * len(steps)
    for step, instructions in enumerate(correspondence):
        for instruction in instructions:
            own[step] |= 1 << instruction
            earlier[step] |= certain.ancestors[instruction]
    reach = [1 << step for step in range(len(steps))]  # what each step leads to, itself included
    kept = []
    for before, after in permutations(range(len(steps)), 2):
        if not own[before] & earlier[after] or own[after] & earlier[before] or reach[after] >> before & 1:
            continue
        kept.append((before, after))
        for step in range(len(steps)):
            if reach[step] >> before & 1:
                reach[step] |= reach[after]
    made = FlowGraph.from_edges(list(steps), kept, flow.title).transitive_reduction()
    soft: list[tuple[float, int, int]] = []
    for before, after in permutations(range(len(steps)), 2):
        ways = ((before, after), (after, before))
        there, back = (
            max((flow.confidence.get((i, j), 0.5) for i in correspondence[a] for j in correspondence[b]), default=0.5)
            for a, b in ways
        )
        if there > back and there < 1.0:
            soft.append((1.0 / (1.0 + (1.0 / there - 1.0) / (1.0 / back - 1.0)), before, after))
    edges = dict.fromkeys(made.edges, 1.0)
    for sure, before, after in sorted(soft, reverse=True):
        if not reach[after] >> before & 1 and not reach[before] >> after & 1:
            edges[before, after] = sure
    return surest(made, edges)
