"""What CrossTask says about its tasks: their steps, how-to texts, and flow graphs over these.

``tasks_primary.txt`` and ``tasks_related.txt``; ``procedures.json`` with instructions, the instructions of each step,
and durations; flow graphs in the published form; and the flow graphs that come with graph2vid, made by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from graph2vid._files import check_format, read_json
from graph2vid._values import count_of
from graph2vid.datasets.dataset import HowTo
from graph2vid.datasets.published_flows import PublishedFlow, pairs_of, read_published_flows
from graph2vid.datasets.reader_tools import Trouble, as_number, entry, read_lines
from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import FlowGraph

TASK_LISTS = ("tasks_primary.txt", "tasks_related.txt")
SUB_FOLDERS = ("crosstask_release", "crosstask_procedures", "crosstask_narrated")
MANUAL_FILE = Path(__file__).with_name("crosstask_manual.json")
MANUAL_KIND = "graph2vid-crosstask-manual"


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
        lines = read_lines(path)
        for first in range(0, len(lines), 5):
            block = lines[first : first + 5]
            number = block[0][0]
            if len(block) < 5 or not block[0][1].isdecimal() or not block[3][1].isdecimal():
                raise FormatError(
                    f"{path}, line {number}: a task is five lines: its number, title, address, number of steps, steps"
                )
            steps = tuple(step.strip() for step in block[4][1].split(","))
            if len(steps) != count_of(block[3][1], f"{path}, line {block[3][0]}: the number of steps"):
                raise FormatError(f"{path}, line {block[4][0]}: {len(steps)} steps where {block[3][1]} are announced")
            listed[block[0][1]] = ListedTask(block[1][1], tuple(step.replace("_", " ") for step in steps))
    return listed


def read_procedures(
    path: Path,
    listed: Mapping[str, ListedTask],
    howtos: dict[str, HowTo],
    durations: dict[str, float],
    trouble: Trouble,
) -> None:
    """Read the how-to texts into ``howtos`` by task, and lengths of videos in seconds into ``durations``."""
    document = read_json(path)
    if not isinstance(document, list):
        raise FormatError(f"{path} should be a list of tasks, not a {type(document).__name__}")
    for number, record in enumerate(document):
        with trouble.passing():
            task = str(entry(record, "task_id", (int, str), f"{path}, entry {number}"))
            where = f"{path}, task {task}"
            lengths = entry(record, "video_duration", dict, where) if "video_duration" in record else {}
            for video, seconds in lengths.items():
                durations[f"{task}_{video}"] = as_number(seconds, where, f"the duration of {video}")
            if not record.get("instructions") or task not in listed:
                continue  # a task without a procedure matters only where it is used
            instructions = tuple(str(text) for text in entry(record, "instructions", list, where))
            rows = entry(record, "crosstask_step_to_instruction", list, where)
            if len(rows) != len(listed[task].steps):
                raise FormatError(f"{where}: {len(rows)} rows of instructions for {len(listed[task].steps)} steps")
            for step, row in enumerate(rows):
                if not isinstance(row, list) or any(type(i) is not int or not 0 <= i < len(instructions) for i in row):
                    raise FormatError(
                        f"{where}: step {step} names instructions {row!r} of {len(instructions)} (counted from 0)"
                    )
            howtos[task] = HowTo(instructions, tuple(tuple(row) for row in rows))


def add_published(path: Path, listed: Mapping[str, ListedTask], howtos: dict[str, HowTo], trouble: Trouble) -> None:
    """Let published flow graphs take the place of how-to texts without one."""
    published: dict[str, PublishedFlow] = read_published_flows(path)
    for task, flow in published.items():
        if task not in listed:
            continue
        with trouble.passing():
            where = f"{path}, task {task}"
            rows = flow.correspondence(len(listed[task].steps), where)
            known = howtos.get(task)
            if not flow.step_of and known is not None and len(known.instructions) == len(flow.instructions):
                rows = known.correspondence
            howtos[task] = HowTo(flow.instructions, rows, flow.flows)


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
            remarks.append(
                f"task {task}: its graph made by hand is of {count} instructions and is left out: here it has "
                f"{len(howto.instructions)}"
            )
            continue
        try:
            flow = FlowGraph.from_edges(
                howto.instructions, pairs_of(entry(graph, "edges", list, where), "edges", where)
            )
        except GraphError as error:
            raise FormatError(f"{where}: {error}") from error
        howtos[task] = replace(howto, flows={**howto.flows, "manual": flow})
