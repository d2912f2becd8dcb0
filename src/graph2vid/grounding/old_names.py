"""What `ground` does under its names of the release before; they go away in the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph2vid.evidence import Cue, Transcript
from graph2vid.grounding.grounding_result import Grounding
from graph2vid.grounding.grounding_service import ground


def ground_video(flow: Any, video: Any, *, model: str | None = None, cache: Any = None, **options: Any) -> Grounding:
    """Ground a media file or captions: ``graph2vid.ground(flow, video, speech_model=model)``."""
    return ground(flow, video, speech_model=model, cache=cache or False, **options)


def ground_media(
    flow: Any, duration: float, *, cues: Sequence[Cue] = (), seen: Any = None, cache: Any = None, **options: Any
) -> Grounding:
    """Ground a transcript: ``graph2vid.ground(flow, Transcript(cues, duration), visual=seen)``."""
    return ground(flow, Transcript(tuple(cues), duration), visual=seen, cache=cache or False, **options)


def ground_narrated(flow: Any, cues: Sequence[Cue], duration: float, **options: Any) -> Grounding:
    """Ground a transcript: ``graph2vid.ground(flow, Transcript(cues, duration))``."""
    return ground_media(flow, duration, cues=cues, **options)
