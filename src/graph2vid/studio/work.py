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
from graph2vid._values import repaired
from graph2vid.errors import Graph2VidError

RESULT, PARSE, CHECK = "result.json", "parse.json", "check.json"
MODEL, ABOUT = "learned.safetensors", "learned.json"
FILM, STRIP, CLIPS = "film.json", "strip.jpg", "clips.zip"

_MOST_PICTURES, _MOST_PEAKS = 160, 4000

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
    write_json(Path(order["output"]) / RESULT, _grounded(order, tell, order.get("adapted")).to_json())


def _grounded(order: dict[str, Any], tell: Tell, adapted: Any = None) -> Any:
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import ground as ground_video
    from graph2vid.studio.corrections import Correction

    flow = FlowGraph.from_json(order["flow"])
    corrections = [Correction.from_json(entry) for entry in order["corrections"]]
    video, captions = order["video"], order["captions"]
    return ground_video(
        flow,
        video or captions,
        captions=captions if video else None,
        constraints=[constraint for correction in corrections for constraint in correction.constraints(flow)],
        progress=lambda stage, done=None, total=None: tell(stage=stage, done=done, total=total),
        adapted=adapted,
        **order["options"],
    )


def ground_all(order: dict[str, Any], tell: Tell, adapted: Any = None) -> None:
    """Ground several videos, each as :func:`ground`; one that cannot be grounded does not hold up the others."""
    failed = []
    for place, one in enumerate(order["videos"]):
        name = Path(one["video"] or one["captions"]).name
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, name=name: tell(warning=f"{name}: {in_words(str(message))}")
                found = _grounded(one, _share(tell, name, place, len(order["videos"])), adapted or one.get("adapted"))
        except Graph2VidError as error:
            failed.append(f"{name}: {_by_name(str(error), one)}")
            tell(warning=failed[-1])
            continue
        write_json(Path(order["output"]) / f"{one['id'] or 'first'}.json", found.to_json())
        tell(part=one["id"])
    if failed and len(failed) == len(order["videos"]):
        raise Graph2VidError(failed[0] if len(failed) == 1 else f"none of the videos was grounded; {failed[0]}")


def _share(tell: Tell, name: str, place: int, number: int) -> Tell:
    """Return what tells of the work on one of several videos as a part of all."""

    def told(stage: str, done: float | None = None, total: float | None = None) -> None:
        part = min(1.0, done / total) if done is not None and total else 0.0
        tell(stage=f"video {place + 1} of {number}: {name}", done=place + part, total=number)

    told("")
    return told


def learn(order: dict[str, Any], tell: Tell) -> None:
    """Learn a task model from the videos that were checked and those that were not, and ground the latter with it."""
    from graph2vid._options import GroundOptions
    from graph2vid.evidence import Cache, transcript_of
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import Grounding, adapt

    flow, output = FlowGraph.from_json(order["flow"]), Path(order["output"])
    taught = [one for one in order["videos"] if one["checked"]]
    again = [one for one in taught if one["result"] is None]  # corrected since it was grounded
    ground_all({**order, "videos": again}, tell)
    asked = GroundOptions.from_mapping(order["options"], text=False).evidence
    transcripts, labels, cache = [], {}, Cache()
    for place, one in enumerate(order["videos"]):
        tell(stage="reading the videos", done=place, total=len(order["videos"]))
        path = one["video"] or one["captions"]
        try:
            transcripts.append(transcript_of(path, one["captions"] if one["video"] else None, asked, cache=cache))
        except Graph2VidError as error:
            tell(warning=f"{Path(path).name}: {_by_name(str(error), one)}")
            continue
        if one["checked"]:
            made = one["result"] or output / f"{one['id'] or 'first'}.json"
            segments = Grounding.load(made).segments
            labels[f"video {len(transcripts)}"] = [(part.id, part.start, part.end) for part in segments]
    tell(stage="learning from what you checked")
    model = adapt(flow, transcripts, annotations=labels, **vars(asked) | {"adapted": None})
    model.save(output / MODEL)
    write_json(output / ABOUT, {"steps": list(model.steps), **model.about})
    ground_all({**order, "videos": [one for one in order["videos"] if not one["checked"]]}, tell, model)


def check(order: dict[str, Any], tell: Tell) -> None:
    """Say where the video does not follow the procedure; as ``graph2vid check RESULT --json`` does."""
    from graph2vid.grounding import Grounding, check_order

    tell(stage="comparing the video with the procedure")
    write_json(Path(order["output"]) / CHECK, check_order(Grounding.load(order["result"])).to_json())


def clips(order: dict[str, Any], tell: Tell) -> None:
    """Cut a clip and a still of each step; as ``graph2vid clips RESULT`` does, in one archive."""
    import zipfile

    from graph2vid.grounding import Grounding, write_clips

    folder = Path(order["output"]) / "clips"
    told = lambda stage, done=None, total=None: tell(stage=stage, done=done, total=total)  # noqa: E731
    write_clips(Grounding.load(order["result"]), folder, video=order["video"], progress=told)
    with zipfile.ZipFile(Path(order["output"]) / CLIPS, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)


def film(order: dict[str, Any], tell: Tell) -> None:
    """Make the small pictures and the waveform under the axis of time."""
    from graph2vid._files import write_bytes
    from graph2vid.evidence import probe
    from graph2vid.footage import filmstrip, loudness, to_jpeg

    about = probe(order["video"])
    length = about.duration
    made: dict[str, Any] = {"duration": length, "pictures": 0, "width": 0, "height": 0, "peaks": []}
    if about.has_video:
        number = max(1, min(_MOST_PICTURES, round(length)))
        told = lambda done, total: tell(stage="making small pictures", done=done, total=total)  # noqa: E731
        strip = filmstrip(order["video"], length, number, progress=told)
        write_bytes(Path(order["output"]) / STRIP, to_jpeg(strip))
        made |= {"pictures": number, "width": strip.shape[1] // number, "height": strip.shape[0]}
    if about.has_audio:
        told = lambda done, total: tell(stage="drawing the waveform", done=done, total=total)  # noqa: E731
        number = max(1, min(_MOST_PEAKS, round(50 * length)))
        made["peaks"] = loudness(order["video"], length, number, progress=told).tolist()
    write_json(Path(order["output"]) / FILM, made)


_IN_BRACKETS = re.compile(r" \([^()]*\)")
_FLAG = re.compile(r"--([a-z][a-z-]*)")

KINDS: dict[str, Callable[[dict[str, Any], Tell], None]] = {
    "parse": parse,
    "ground": ground,
    "ground-all": ground_all,
    "learn": learn,
    "check": check,
    "film": film,
    "clips": clips,
}


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
        output.write(repaired(json.dumps(line, ensure_ascii=False)) + "\n")
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
