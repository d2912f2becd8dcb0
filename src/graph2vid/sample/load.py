"""Reading the bundled sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid._files import check_format, read_json
from graph2vid.flow import FlowGraph

FOLDER = Path(__file__).parent
FLOW_FILE = FOLDER / "pancakes.flow"
SCORES_FILE = FOLDER / "pancakes.npy"
TRUTH_FILE = FOLDER / "pancakes.truth.json"
FILES = (FLOW_FILE, SCORES_FILE, TRUTH_FILE)

TRUTH_KIND = "graph2vid-sample-truth"
TRUTH_VERSION = 1


@dataclass(frozen=True, eq=False)
class Sample:
    """A procedure, the scores of a video, and the truth.

    Attributes
    ----------
    flow : FlowGraph
        The procedure; K steps.
    scores : array, float32 [K, N]
        How well each step explains each clip; higher is better.
    clip_seconds : float
        The length of a clip.
    truth : dict of int to (float, float)
        Start and end in seconds of every step that the video shows.
    """

    flow: FlowGraph
    scores: NDArray[np.float32]
    clip_seconds: float
    truth: dict[int, tuple[float, float]]


def load() -> Sample:
    """Read the bundled sample."""
    flow = FlowGraph.load(FLOW_FILE)
    document, truth = read_truth(TRUTH_FILE, flow)
    return Sample(flow, np.load(SCORES_FILE, allow_pickle=False), document["clip_seconds"], truth)


def read_truth(path: Path, flow: FlowGraph) -> tuple[dict[str, Any], dict[int, tuple[float, float]]]:
    """Read what is known about a video: the document, and start and end of every step that is shown."""
    document = check_format(read_json(path), kind=TRUTH_KIND, version=TRUTH_VERSION, source=path.name)
    return document, {flow.index(part["step"]): (part["start"], part["end"]) for part in document["segments"]}
