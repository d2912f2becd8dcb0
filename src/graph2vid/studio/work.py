"""What runs in a process of its own, so that it can be stopped: ``python -m graph2vid.studio.work``.

The first line of standard input is the order, as JSON. Progress goes to standard output, a JSON object in each
line: ``{"stage": …, "done": …, "total": …}``, ``{"warning": …}``, and last ``{"finished": true}`` or ``{"error": …}``.
When standard input ends, whoever gave the order is gone, and so is this process.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graph2vid._files import write_json
from graph2vid.errors import Graph2VidError

RESULT, PARSE, CHECK = "result.json", "parse.json", "check.json"

Tell = Callable[..., None]


def parse(order: dict[str, Any], tell: Tell) -> None:
    """Find the flow graph of a procedure in words; as ``graph2vid parse --json`` does."""
    from graph2vid.text import parse, parse_to_json, procedure_from_text

    tell(stage="reading the procedure")
    procedure = procedure_from_text(order["text"], source="the procedure")
    tell(stage=f"finding the order of {len(procedure)} steps")
    found = parse(procedure, order["parser"])
    write_json(Path(order["output"]) / PARSE, parse_to_json(found))


def ground(order: dict[str, Any], tell: Tell) -> None:
    """Say when each step happens; as ``graph2vid ground PROCEDURE VIDEO -o`` does."""
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import ground as ground_video
    from graph2vid.studio.corrections import Correction

    flow = FlowGraph.from_json(order["flow"])
    corrections = [Correction.from_json(entry) for entry in order["corrections"]]
    video, captions = order["video"], order["captions"]
    found = ground_video(
        flow,
        video or captions,
        captions=captions if video else None,
        constraints=[constraint for correction in corrections for constraint in correction.constraints(flow)],
        progress=lambda stage, done=None, total=None: tell(stage=stage, done=done, total=total),
        **order["options"],
    )
    write_json(Path(order["output"]) / RESULT, found.to_json())


def check(order: dict[str, Any], tell: Tell) -> None:
    """Say where the video does not follow the procedure; as ``graph2vid check RESULT --json`` does."""
    from graph2vid.grounding import Grounding, check_order

    tell(stage="comparing the video with the procedure")
    write_json(Path(order["output"]) / CHECK, check_order(Grounding.load(order["result"])).to_json())


_IN_BRACKETS = re.compile(r" \([^()]*\)")
_FLAG = re.compile(r"--([a-z][a-z-]*)")

KINDS: dict[str, Callable[[dict[str, Any], Tell], None]] = {"parse": parse, "ground": ground, "check": check}


def in_words(message: str) -> str:
    """Return a message of the command line for people who see no command line: a flag is a setting."""
    message = _IN_BRACKETS.sub(lambda found: "" if " --" in f" {found[0][2:]}" else found[0], " ".join(message.split()))
    return _FLAG.sub(lambda flag: f"the setting “{flag[1].replace('-', ' ')}”", message)


def _by_name(message: str, order: dict[str, Any]) -> str:
    """Return a message in which files are called by their names: where they lie is nobody's concern."""
    for key in ("video", "captions", "result"):
        if path := order.get(key):
            message = message.replace(path, Path(path).name)
    return in_words(message)


def _die_with_the_server() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def main() -> int:
    """Do what standard input orders."""
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_the_server, daemon=True).start()
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints does not disturb the lines

    def tell(**line: Any) -> None:
        output.write(json.dumps(line) + "\n")
        output.flush()

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: tell(warning=in_words(str(message)))
        try:
            KINDS[order["kind"]](order, tell)
        except Graph2VidError as error:
            tell(error=_by_name(str(error), order))
            return 2
        except MemoryError:
            tell(error="out of memory: use longer clips, or fewer steps that may come in any order")
            return 2
    tell(finished=True)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads of libraries do not hold it up
