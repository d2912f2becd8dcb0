"""The speech of the bundled video, recognised once for all tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from graph2vid.evidence import Cue
from graph2vid.evidence.evidence_cache import Cache
from graph2vid.evidence.speech import transcribe
from graph2vid.sample.narrated import NarratedFiles

_KEPT = tempfile.TemporaryDirectory()


@cache
def bundled() -> tuple[Path, tuple[Cue, ...], list[tuple[float, float]]]:
    """Return the folder of the cache, the transcript, and the progress that was told."""
    told: list[tuple[float, float]] = []
    folder = Path(_KEPT.name)
    cues = transcribe(
        NarratedFiles().video, cache=Cache(folder), progress=lambda done, total: told.append((done, total))
    )
    return folder, cues, told
