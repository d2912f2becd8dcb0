"""What every layout with a folder of caption files shares: evidence from the transcript, and the caption files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graph2vid.datasets.dataset import Embeddings, Evidence, Recording, Task
from graph2vid.datasets.reader_tools import ClipOptions, choice, folder, stems
from graph2vid.errors import FormatError
from graph2vid.evidence import (
    SUFFIXES,
    narration_evidence,
    narration_similarity,
    read_captions,
    said_vectors,
    step_vectors,
    text_embedder,
)

NARRATIONS = ("weighed", "plain")
"""How the transcript becomes evidence: weighed against background, or the plain cosines of a clip's cues."""


@dataclass(frozen=True)
class NarrationOptions(ClipOptions):
    """How captioned videos are read.

    Attributes
    ----------
    embedder : str
        The text embedder.
    narration : {"weighed", "plain"}
        How the transcript becomes evidence, see :class:`Narration`.
    """

    embedder: str = "wordllama"
    narration: str = "weighed"

    @property
    def told(self) -> dict[str, Any]:
        """The options that a dataset tells."""
        return {name: getattr(self, name) for name in ("clip_seconds", "offset", "embedder", "narration")}


@dataclass(frozen=True)
class Narration:
    """Evidence from captions.

    Attributes
    ----------
    files : mapping of str to Path
        The caption file of each video; recordings name their video in ``notes["video"]``.
    tasks : mapping of str to Task
    embedder : str
        The name of the text embedder.
    narration : {"weighed", "plain"}
        ``weighed``: log-odds against background, and skip costs
        (:func:`graph2vid.evidence.narration_evidence`). ``plain``: each clip is as like a step as the most alike of
        the cues that it touches (:func:`graph2vid.evidence.narration_similarity`), and every step must appear.
    """

    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    embedder: str
    narration: str = "weighed"

    def __post_init__(self) -> None:
        choice(self.narration, "narration", NARRATIONS)
        text_embedder(self.embedder)  # a missing package is named now, not in the middle of the work

    def embeddings(self, recording: Recording) -> Embeddings:
        """Return vectors of the steps and of the transcript around each clip."""
        cues = read_captions(self.files[recording.notes["video"]])
        embed, steps = text_embedder(self.embedder), self.tasks[recording.task].procedure
        clips = said_vectors(
            cues, recording.n_clips, embed, clip_seconds=recording.clip_seconds, offset=recording.offset
        )
        return Embeddings(step_vectors(steps, embed), clips)

    def __call__(self, recording: Recording) -> Evidence:
        steps = self.tasks[recording.task].procedure
        cues = read_captions(self.files[recording.notes["video"]])
        embed, n_clips = text_embedder(self.embedder), recording.n_clips
        seconds, offset = recording.clip_seconds, recording.offset
        if self.narration == "plain":
            similarity = narration_similarity(steps, cues, n_clips, embed, clip_seconds=seconds, offset=offset)
            return Evidence(similarity, None, "cosine")
        found = narration_evidence(steps, cues, n_clips, embed, clip_seconds=seconds, offset=offset)
        background = np.zeros(n_clips, dtype=np.float32)
        return Evidence(found.log_odds.astype(np.float32), background, "log_odds", found.skip.astype(np.float32))


def caption_files(directory: Path) -> dict[str, Path]:
    """Return the caption files of a folder by the name of their video."""
    return stems(folder(directory, "VIDEO.vtt or VIDEO.srt"), *SUFFIXES)


def caption_file(files: Mapping[str, Path], video: str, directory: Path) -> Path:
    """Return the caption file of a video; one without is an error."""
    if video not in files:
        raise FormatError(
            f"video {video} is annotated but has no captions: there is no {directory / video}.vtt or .srt"
        )
    return files[video]


def clips_to_cover(seconds: float, clip_seconds: float) -> int:
    """Return how many clips cover a video of this length; at least one."""
    return max(1, math.ceil(seconds / clip_seconds - 1e-9))
