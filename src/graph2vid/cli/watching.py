"""What commands that take a video share: watching it with a progress bar, and grounding what fits it best."""

from __future__ import annotations

import mimetypes
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph2vid.cli.progress import Tell
    from graph2vid.evidence import Seen
    from graph2vid.evidence.evidence_cache import Cache
    from graph2vid.flow import FlowGraph
    from graph2vid.grounding import Grounding
    from graph2vid.grounding.from_video import Narration

_ADDRESS = re.compile(r"(https?|ftp|rtmp):/+(.*)", re.IGNORECASE)  # a path has lost one of the slashes


def check_video(inputs: Sequence[Path], has_arrays: bool) -> None:
    """Refuse what is not a procedure, or is not a video, by its name, and what is not there: PROCEDURE… [VIDEO]."""
    from graph2vid.errors import InputError

    for path in inputs:
        if address := _ADDRESS.match(str(path)):
            raise InputError(
                f"{address[1]}://{address[2]} is a web address: download the video first (yt-dlp -f mp4 URL), or its "
                "captions (yt-dlp --skip-download --write-subs --write-auto-subs URL), and give that file"
            )
    procedures, video = (inputs, None) if has_arrays else (inputs[:-1], inputs[-1])
    for path in procedures:
        if not _shows_something(path):
            continue
        if video is not None and not _shows_something(video):
            order = shlex.join(["graph2vid", "ground", *(str(one) for one in inputs if one != path), str(path)])
            raise InputError(f"{path} is a video or its captions, which come after the procedure: {order}")
        raise InputError(f"{path} is a video or captions, where a procedure is expected: a text, or a flow graph")
    if video is not None and not video.exists():
        raise InputError(f"cannot read {video}: No such file or directory")


def _shows_something(path: Path) -> bool:
    """Say whether a file is a video, a sound or captions, by its suffix."""
    from graph2vid.evidence.captions import SUFFIXES

    kind = mimetypes.guess_type(path.name)[0] or ""
    return path.suffix.lower() in SUFFIXES or kind.startswith(("video/", "audio/"))


def watch_with_progress(video: Path, cache: Cache, tell: Tell, **options: Any) -> tuple[Narration, Seen | None]:
    """Find out what is said and seen in a video; ``tell`` is told how far that is.

    ``options`` are those of :func:`graph2vid.grounding.from_video.watch`.
    """
    from graph2vid.grounding.from_video import watch

    tell("loading the video and models")
    return watch(
        video,
        cache=cache,
        listening=lambda done, total: tell("transcribing", done, total),
        looking=lambda done, total: tell("embedding frames", done, total),
        **options,
    )


def ground_best(
    procedures: Sequence[FlowGraph],
    narration: Narration,
    seen: Seen | None,
    *,
    embedder: str,
    cache: Cache,
    options: Callable[[FlowGraph], dict[str, Any]],
) -> Grounding:
    """Ground the procedure that fits the video best; say which that is, and warn where hardly any does.

    ``options`` gives for a procedure those of :func:`graph2vid.grounding.ground_media`.
    """
    from rich.console import Console

    from graph2vid.evidence.plausibility import UNLIKELY
    from graph2vid.grounding import ground_media

    stderr = Console(stderr=True, highlight=False)

    def tell(line: str, style: str) -> None:
        stderr.print(line, markup=False, soft_wrap=True, style=style)

    best = procedures[0]
    if len(procedures) > 1:
        ranked = _ranked(procedures, narration, seen, embedder, cache)
        best = procedures[ranked[0][0]]
        names = [f"{procedures[at].title or f'procedure {at + 1}'}{note}" for at, note in ranked]
        tell(f"fits best: {'; '.join(names)}", "dim")
    result = ground_media(
        best, narration.duration, cues=narration.cues, seen=seen, embedder=embedder, cache=cache, **options(best)
    )
    about = result.options.get("narration")
    if about is None:
        return result
    if about["plausibility"] < UNLIKELY:
        tell(
            f"warning: what is said hardly goes with this procedure ({about['plausibility']:.0%}); is it the right one "
            "for this video, and in the language spoken? (--embedder names one for other languages)",
            "yellow",
        )
    return replace(result, options=result.options | {"narration": about | {"source": narration.source}})


def _ranked(
    procedures: Sequence[FlowGraph], narration: Narration, seen: Seen | None, embedder: str, cache: Cache
) -> list[tuple[int, str]]:
    """Return the places of the procedures, the likeliest first, with how likely each is where that can be told."""
    from graph2vid.evidence import plausibilities, text_embedder
    from graph2vid.evidence.embed import cached
    from graph2vid.evidence.seen import frames_likeness

    if narration.cues:
        asked = [(procedure.title, procedure.texts) for procedure in procedures]
        fits = plausibilities(asked, narration.cues, cached(text_embedder(embedder), cache))
        scored = [(fit.score, f" {fit.probability:.0%}") for fit in fits]
    else:
        assert seen is not None  # else there is nothing to go by, and watching has said so
        scored = [(frames_likeness(procedure.texts, seen), "") for procedure in procedures]
    order = sorted(range(len(procedures)), key=lambda at: -scored[at][0])
    return [(at, scored[at][1]) for at in order]
