"""What every layout with a folder of caption files shares: evidence from what is said, and the files of the videos."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graph2vid.datasets.model import Evidence, Recording, Task
from graph2vid.datasets.reading import folder, stems
from graph2vid.errors import FormatError
from graph2vid.evidence.captions import SUFFIXES, read_captions
from graph2vid.evidence.embed import text_embedder
from graph2vid.evidence.narration import narration_similarity


@dataclass(frozen=True)
class Narration:
    """Evidence from captions: each clip is as like a step as the most alike of the cues that it touches.

    Attributes
    ----------
    files : mapping of str to Path
        The caption file of each video; recordings name their video in ``notes["video"]``.
    tasks : mapping of str to Task
    embedder : str
        The name of the text embedder.
    """

    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    embedder: str

    def __call__(self, recording: Recording) -> Evidence:
        similarity = narration_similarity(
            self.tasks[recording.task].procedure,
            read_captions(self.files[recording.notes["video"]]),
            recording.n_clips,
            text_embedder(self.embedder),
            clip_seconds=recording.clip_seconds,
            offset=recording.offset,
        )
        return Evidence(similarity, None, "cosine")


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
