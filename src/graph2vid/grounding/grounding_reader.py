"""Reading the JSON document of a grounding."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._values import number_of, shown
from graph2vid.errors import FormatError, GraphError
from graph2vid.evidence import Cue
from graph2vid.flow import FlowGraph
from graph2vid.grounding.doubt import Elsewhere
from graph2vid.grounding.grounding_result import GroundedSegment, Grounding
from graph2vid.grounding.quantised import unpack


class GroundingReader:
    """Reads the parts of a document; every error names the file and the place in it."""

    def __init__(self, source: str) -> None:
        self.source = source

    def wrong(self, place: str, needed: str, found: Any) -> FormatError:
        return FormatError(f"{self.source}: {place!r} must be {needed}, not {shown(found)}")

    def get(self, holder: dict[str, Any], key: str, kind: type, needed: str, place: str = "") -> Any:
        if key not in holder:
            raise FormatError(f"{self.source}: {place + key!r} is missing")
        if not isinstance(holder[key], kind):
            raise self.wrong(place + key, needed, holder[key])
        return holder[key]

    def number(self, holder: dict[str, Any], key: str, place: str = "") -> float:
        return number_of(holder.get(key), f"{self.source}: {place + key!r}")

    def span(self, entry: Any, place: str) -> tuple[float, float]:
        if not isinstance(entry, dict):
            raise self.wrong(place, "an object", entry)
        return self.number(entry, "start", f"{place}."), self.number(entry, "end", f"{place}.")

    def step(self, name: Any, place: str, flow: FlowGraph) -> int:
        if isinstance(name, str):
            with contextlib.suppress(GraphError):
                return flow.index(name)
        raise self.wrong(place, "the id of a step of the flow", name)

    def segment(self, entry: Any, place: str, flow: FlowGraph) -> GroundedSegment:
        start, end = self.span(entry, place)
        step = self.step(entry.get("step"), f"{place}.step", flow)
        if not start < end:
            raise self.wrong(f"{place}.end", f"later than the start ({start} s)", end)
        sure = None if entry.get("confidence") is None else self.number(entry, "confidence", f"{place}.")
        margin = math.inf if entry.get("margin") == "inf" else entry.get("margin")
        if margin not in (None, math.inf):
            margin = self.number(entry, "margin", f"{place}.")
        raw = None if entry.get("posterior") is None else self.number(entry, "posterior", f"{place}.")
        if "posterior" not in entry:  # of a version whose confidence was the posterior
            sure, raw = None, sure
        why = self.get({"why": ""} | entry, "why", str, "a text", f"{place}.")
        return GroundedSegment(step, flow.ids[step], flow.texts[step], start, end, sure, margin, raw, why)

    def labels(self, document: dict[str, Any], n_steps: int) -> NDArray[np.int64]:
        found = self.get(document, "labels", list, "a list of step indices")
        for clip, label in enumerate(found):
            if isinstance(label, bool) or not isinstance(label, int) or not -1 <= label < n_steps:
                raise self.wrong(f"labels[{clip}]", f"a whole number from -1 to {n_steps - 1}", label)
        return np.array(found, dtype=np.int64)

    def cue(self, entry: Any, place: str) -> Cue:
        start, end = self.span(entry, place)
        text = self.get(entry, "text", str, "a text", f"{place}.")
        kind = self.get({"kind": ""} | entry, "kind", str, "a text", f"{place}.")
        if "box" not in entry:
            return Cue(start, end, text, kind=kind)
        box = self.get(entry, "box", list, "left, top, width and height", f"{place}.")
        if len(box) != 4:
            raise self.wrong(f"{place}.box", "left, top, width and height", box)
        left, top, width, height = (number_of(one, f"{self.source}: '{place}.box'") for one in box)
        return Cue(start, end, text, kind=kind, box=(left, top, width, height))

    def evidence(self, packed: Any, shape: tuple[int, int], key: str = "evidence") -> NDArray[np.float64]:
        try:
            found = unpack(packed)
        except ValueError as error:
            raise self.wrong(key, str(error), packed) from None
        if found.shape != shape:
            raise self.wrong(f"{key}.shape", f"{shape[0]} steps × {shape[1]} clips", list(found.shape))
        return found

    def absent(self, document: dict[str, Any], n_steps: int) -> tuple[float, ...]:
        entries = self.get({"steps": []} | document, "steps", list, "a list")
        if len(entries) != n_steps or not all(isinstance(entry, dict) and "absent" in entry for entry in entries):
            return ()
        return tuple(self.number(entry, "absent", f"steps[{at}].") for at, entry in enumerate(entries))

    def entries(self, holder: dict[str, Any], key: str, place: str = "") -> list[Any]:
        found: list[Any] = self.get({key: []} | holder, key, list, "a list", place)
        return found

    def edges(self, holder: dict[str, Any], key: str, flow: FlowGraph, place: str = "") -> tuple[tuple[int, int], ...]:
        edges = []
        for pair in self.entries(holder, key, place):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.wrong(place + key, "a list of pairs of ids", pair)
            edges.append((self.step(pair[0], place + key, flow), self.step(pair[1], place + key, flow)))
        return tuple(edges)

    def place(self, entry: Any, place: str, flow: FlowGraph) -> Elsewhere:
        start, end = self.span(entry, place)
        step, gain = self.step(entry.get("step"), f"{place}.step", flow), self.number(entry, "gain", f"{place}.")
        return Elsewhere(step, start, end, gain, self.edges(entry, "against", flow, f"{place}."))

    def grounding(self, document: dict[str, Any]) -> Grounding:
        flow = FlowGraph.from_json(self.get(document, "flow", dict, "a flow graph"), source=f"{self.source}, flow")
        clip_seconds = self.number(document, "clip_seconds")
        if clip_seconds <= 0:
            raise self.wrong("clip_seconds", "positive", clip_seconds)
        entries = self.get(document, "segments", list, "a list")
        labels = self.labels(document, len(flow))
        known = {key: value for key, value in document.items() if value is not None}
        said = self.get({"cues": []} | known, "cues", list, "a list")
        sources = self.get({"sources": {}} | known, "sources", dict, "an object")
        shape = len(flow), len(labels)
        steps = {
            key: tuple(self.step(name, key, flow) for name in self.get(document, key, list, "a list of ids"))
            for key in ("not_shown", "order")
        }
        return Grounding(
            flow=flow,
            segments=tuple(self.segment(entry, f"segments[{i}]", flow) for i, entry in enumerate(entries)),
            not_shown=steps["not_shown"],
            order=steps["order"],
            cost=self.number(document, "cost"),
            labels=labels,
            clip_seconds=clip_seconds,
            offset=self.number(document, "offset"),
            options=self.get(document, "options", dict, "an object"),
            version=self.get(document, "graph2vid", str, "a version"),
            video=self.get(known, "video", str, "a path or a URL") if "video" in known else None,
            cues=tuple(self.cue(entry, f"cues[{i}]") for i, entry in enumerate(said)),
            evidence=self.evidence(known["evidence"], shape) if "evidence" in known else None,
            absent=self.absent(document, len(flow)),
            sources={name: self.evidence(packed, shape, f"sources.{name}") for name, packed in sources.items()},
            overruled=self.edges(known, "overruled", flow),
            suspended=tuple(self.step(name, "suspended", flow) for name in self.entries(known, "suspended")),
            elsewhere=tuple(
                self.place(entry, f"elsewhere[{i}]", flow) for i, entry in enumerate(self.entries(known, "elsewhere"))
            ),
        )
