"""The bundled narrated video: its files, and the truth about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph2vid.flow import FlowGraph
from graph2vid.sample.load import FOLDER, read_truth

NAME = "spaghetti"


@dataclass(frozen=True)
class NarratedFiles:
    """The files of a narrated video in a folder."""

    folder: Path = FOLDER

    @property
    def text(self) -> Path:
        """The procedure as a text for people."""
        return self.folder / f"{NAME}.txt"

    @property
    def flow(self) -> Path:
        """The procedure as a flow graph; its steps are those of the text, in the same order."""
        return self.folder / f"{NAME}.flow"

    @property
    def video(self) -> Path:
        """The video, with sound."""
        return self.folder / f"{NAME}.mp4"

    @property
    def captions(self) -> Path:
        """The narration, word for word."""
        return self.folder / f"{NAME}.vtt"

    @property
    def truth(self) -> Path:
        """When each step is shown."""
        return self.folder / f"{NAME}.truth.json"

    @property
    def all(self) -> tuple[Path, ...]:
        """All of them."""
        return self.text, self.flow, self.video, self.captions, self.truth


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
