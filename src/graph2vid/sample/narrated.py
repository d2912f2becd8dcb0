"""The bundled narrated video: its files, and the truth about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph2vid.flow import FlowGraph
from graph2vid.sample.load import FOLDER, read_truth

NAME = "spaghetti"


class NarratedFiles:
    """The files of a narrated video in a folder.

    Attributes
    ----------
    folder : Path
    text : Path
        The procedure as a text for people.
    flow : Path
        The procedure as a flow graph; its steps are those of the text, in the same order.
    video : Path
        The video, with sound.
    captions : Path
        The narration, word for word.
    truth : Path
        When each step is shown.
    all : tuple of Path
        All of them.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.all = tuple(folder / f"{NAME}{suffix}" for suffix in (".txt", ".flow", ".mp4", ".vtt", ".truth.json"))
        self.text, self.flow, self.video, self.captions, self.truth = self.all


@dataclass(frozen=True, eq=False)
class Narrated:
    """A narrated video and the truth about it.

    Attributes
    ----------
    files : NarratedFiles
        Procedure, video and captions.
    flow : FlowGraph
        The true flow graph; K steps, in the order in which they are written.
    duration : float
        Seconds.
    truth : dict of int to (float, float)
        Start and end in seconds of every step.
    other_words : int
        The step that is said in quite other words than it is written.
    """

    files: NarratedFiles
    flow: FlowGraph
    duration: float
    truth: dict[int, tuple[float, float]]
    other_words: int


def load_narrated(folder: Path = FOLDER) -> Narrated:
    """Read what is known about the narrated video in a folder; by default, the bundled one."""
    files = NarratedFiles(folder)
    flow = FlowGraph.load(files.flow)
    document, truth = read_truth(files.truth, flow)
    return Narrated(files, flow, document["duration"], truth, flow.index(document["other_words"]))
