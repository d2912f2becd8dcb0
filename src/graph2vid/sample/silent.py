"""The bundled silent video: its files, and the truth about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph2vid.flow import FlowGraph
from graph2vid.sample.load import FOLDER, read_truth
from graph2vid.sample.narrated import NarratedFiles

NAME = "spaghetti-silent"


class SilentFiles:
    """The files of a silent video in a folder: the procedure is that of the narrated sample.

    Attributes
    ----------
    folder : Path
    video : Path
        The video: music, and what is done written into the picture.
    truth : Path
        When each step is shown.
    all : tuple of Path
        Both.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.all = tuple(folder / f"{NAME}{suffix}" for suffix in (".mp4", ".truth.json"))
        self.video, self.truth = self.all


@dataclass(frozen=True, eq=False)
class Silent:
    """A silent video with on-screen text, and the truth about it.

    Attributes
    ----------
    text : Path
        The procedure as a text for people.
    files : SilentFiles
    flow : FlowGraph
        The true flow graph; K steps, in the order in which they are written.
    duration : float
        Seconds.
    truth : dict of int to (float, float)
        Start and end in seconds of every step.
    """

    text: Path
    files: SilentFiles
    flow: FlowGraph
    duration: float
    truth: dict[int, tuple[float, float]]


def load_silent(folder: Path = FOLDER) -> Silent:
    """Read what is known about the silent video in a folder; by default, the bundled one."""
    files, procedure = SilentFiles(folder), NarratedFiles()
    flow = FlowGraph.load(procedure.flow)
    document, truth = read_truth(files.truth, flow)
    return Silent(procedure.text, files, flow, document["duration"], truth)
