"""Projects of many videos: what each of them is like, where to correct next, and what was learnt from corrections."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from graph2vid._files import read_json, write_json
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence import content_words
from graph2vid.flow import colour_of
from graph2vid.grounding import LEAST_LABELLED, Grounding
from graph2vid.studio import models, work
from graph2vid.studio.edits import Checked, Learned
from graph2vid.studio.jobs import Job
from graph2vid.studio.projects import Project, Take, numbered
from graph2vid.studio.service import Studio, learned_about

_MOST_NEXT, _MOST_SEGMENTS = 5, 3
_UNKNOWN = 0.5  # the probability of what nothing is known about


@dataclass(frozen=True)
class Part:
    """A segment of a result, or a step that it does not show (without times); ``sure`` is a probability."""

    step: str
    text: str
    start: float | None
    end: float | None
    sure: float
    why: str


@dataclass(frozen=True)
class Digest:
    """What lists need of a result."""

    made_from: Any
    parts: tuple[Part, ...]
    bar: tuple[tuple[float, float, str], ...]
    doubtful: int
    confidence: float | None
    duration: float
    words: frozenset[str]

    @property
    def wrong_seconds(self) -> float:
        """How many seconds of the segments are expected to be wrong; of a step not shown, as many as of a usual one."""
        shown = [part.end - part.start for part in self.parts if part.start is not None and part.end is not None]
        usual = sum(shown) / len(shown) if shown else self.duration / 10
        return sum((1 - part.sure) * _seconds(part, usual) for part in self.parts)


def _seconds(part: Part, usual: float) -> float:
    return usual if part.start is None or part.end is None else part.end - part.start


def digest_of(take: Take) -> Digest | None:
    """Return the digest of the result that holds now; None if there is none."""
    results = take.results()
    if not results:
        return None
    path = results[0][1]
    about = path.stat()
    return _digest(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4096)
def _digest(path: Path, changed: int, size: int) -> Digest:
    """Return the digest of a result file, as it was when it was changed last."""
    found = Grounding.from_json(read_json(path), source=path.name)
    begin, length = found.offset, found.duration or 1.0
    parts = [
        Part(one.id, one.text, one.start, one.end, _sure(one.confidence, one.posterior), one.why)
        for one in found.segments
    ]
    for step in found.not_shown:
        sure = found.absent[step] if found.absent else _UNKNOWN
        parts.append(Part(found.flow.ids[step], found.flow.texts[step], None, None, sure, "not found"))
    known = [one.confidence for one in found.segments if one.confidence is not None]
    return Digest(
        found.options.get("studio"),
        tuple(parts),
        tuple(((s.start - begin) / length, (s.end - begin) / length, colour_of(s.step)) for s in found.segments),
        sum(one.is_doubtful for one in found.segments),
        round(sum(known) / len(known), 4) if known else None,
        found.duration,
        frozenset(word for cue in found.cues for word in content_words(cue.text)),
    )


def _sure(confidence: float | None, posterior: float | None) -> float:
    known = posterior if confidence is None else confidence
    return _UNKNOWN if known is None else known


# -- lists -----------------------------------------------------------------------------------------------------


def corpus(studio: Studio, project: Project) -> models.Corpus:
    """Return the videos of a project, where to correct next, and what was learnt."""
    digests: dict[str, Digest] = {}
    videos = [_video_state(studio, take, digests) for take in project.takes if any(take.media)]
    return models.Corpus(videos=videos, next=_next(project, digests), lesson=_lesson(project), least=LEAST_LABELLED)


def _video_state(studio: Studio, take: Take, digests: dict[str, Digest]) -> models.VideoState:
    video, captions = take.media
    found: dict[str, Any] = {"outdated": [], "doubtful": 0, "confidence": None, "duration": None, "bar": []}
    found |= {"status": "new", "problem": "", "there": False}
    try:
        digest = digest_of(take)
        for media in (video, captions):
            found["there"] |= media is not None and studio.path_of(take.project, media).is_file()
    except Graph2VidError as error:
        digest = None
        found["problem"] = str(error)
    if digest is not None:
        digests[take.id] = digest
        found |= {key: getattr(digest, key) for key in ("doubtful", "confidence", "duration", "bar")}
        found["outdated"] = studio.outdated(take, digest.made_from)
        found["status"] = "checked" if take.is_checked else "outdated" if found["outdated"] else "grounded"
    return models.VideoState(
        id=take.id,
        title=take.title,
        has_video=video is not None,
        captions=None if captions is None else captions.name,
        corrections=len(take.corrections),
        **found,
    )


def _next(project: Project, digests: dict[str, Digest]) -> list[models.NextVideo]:
    """Return the videos where a correction teaches most, the best first.

    That is where much is expected to be wrong, and where people say other things than in the videos that were checked,
    or that stand before it in the list; within a video, where much is wrong of a step that was not corrected often.
    """
    takes = {take.id: take for take in project.takes}
    known = [digests[video].words for video, take in takes.items() if take.is_checked and video in digests]
    corrected = Counter(one.step for take in takes.values() for one in take.corrections)
    left = {video: one for video, one in digests.items() if not takes[video].is_checked and one.wrong_seconds > 0}
    found: list[models.NextVideo] = []
    while left and len(found) < _MOST_NEXT:
        new = {video: _newness(one.words, known) for video, one in left.items()}
        best = max(left, key=lambda video: left[video].wrong_seconds * (0.1 + new[video]))
        one = left.pop(best)
        known.append(one.words)

        def worth(part: Part) -> float:
            return (1 - part.sure) * _seconds(part, 10.0) / (1 + corrected[part.step])

        parts = sorted(one.parts, key=worth, reverse=True)[:_MOST_SEGMENTS]
        segments = [
            models.NextSegment(**{key: getattr(part, key) for key in ("step", "text", "start", "end", "why")})
            for part in parts
        ]
        seconds = round(one.wrong_seconds, 1)
        about: dict[str, Any] = {"title": takes[best].title, "seconds": seconds, "new": round(new[best], 2)}
        found.append(models.NextVideo(id=best, segments=segments, **about))
    return found


def _newness(words: frozenset[str], known: list[frozenset[str]]) -> float:
    """Return the share of words in which a video differs from the one that is most like it."""
    return 1 - max((len(words & other) / max(1, len(words | other)) for other in known), default=0.0)


def summary(project: Project) -> models.ProjectSummary:
    """Return the entry of a project in the list."""
    found: dict[str, Any] = {"title": "", "steps": 0, "video": "", "has_result": False, "bar": [], "problem": ""}
    found |= {"doubtful": 0, "confidence": None, "videos": 0, "grounded": 0, "checked": 0, "has_picture": False}
    try:
        takes = project.takes
        found |= {"title": project.about.title, "videos": sum(any(take.media) for take in takes)}
        found["video"] = takes[0].title if found["videos"] else ""
        found["has_picture"] = takes[0].media[0] is not None
        found["steps"] = 0 if project.draft is None else len(project.draft.flow)
        digests = [one for one in map(digest_of, takes) if one is not None]
        known = [one.confidence for one in digests if one.confidence is not None]
        found |= {"grounded": len(digests), "checked": sum(take.is_checked for take in takes)}
        found |= {"has_result": bool(digests), "doubtful": sum(one.doubtful for one in digests)}
        found["confidence"] = round(sum(known) / len(known), 4) if known else None
        found["bar"] = digests[0].bar if digests else []
    except Graph2VidError as error:
        found["problem"] = str(error)
    return models.ProjectSummary(name=project.name, changed=project.changed, **found)


# -- ground all, and learn -------------------------------------------------------------------------------------------


def ground_all(studio: Studio, project: Project) -> Job:
    """Ground every video that has no result yet, or an outdated one; a checked one only if its corrections changed."""
    orders, made_from = [], {}
    for take in project.takes:
        if not any(take.media):
            continue
        order, about = studio.order(take)
        with suppress(Graph2VidError):  # a damaged result is made anew
            digest = digest_of(take)
            if digest is not None and not studio.outdated(take, digest.made_from):
                continue
        orders.append({"id": take.id, **order})
        made_from[take.id] = about
    if not orders:
        raise InputError("every video is grounded already, and nothing has changed since")

    def part(output: Path, video: str) -> None:
        with suppress(InputError):  # it was taken out of the project meanwhile
            take = project.take(video)
            studio.keep_result(take, output / f"{video or 'first'}.json", made_from[video], take.learned)

    return studio.start(project, "ground-all", {"videos": orders}, lambda _: None, part)


def check_video(project: Project, take: Take, checked: bool) -> None:
    """Note that all of a video is right now, or take that back."""
    if checked and not take.results():
        raise InputError("there is no result to be right or wrong: ground the video first")
    with project.lock:
        if take.is_checked != checked:
            project.history = project.history.edited(Checked(op="checked", video=take.id, checked=checked))


def learn(studio: Studio, project: Project) -> Job:
    """Learn a task model from the checked videos and the others; the others are grounded with it."""
    takes = [take for take in project.takes if any(take.media)]
    checked = [take for take in takes if take.is_checked]
    if len(checked) < LEAST_LABELLED:
        raise InputError(f"check {LEAST_LABELLED} videos first: fewer teach nothing that could be relied on")
    orders: list[dict[str, Any]] = []
    made_from = {}
    for take in takes:
        order, made_from[take.id] = studio.order(take)
        digest, results = digest_of(take), take.results()
        is_current = digest is not None and not studio.outdated(take, digest.made_from)
        kept = str(results[0][1]) if results and is_current else None
        orders.append({"id": take.id, "checked": take.is_checked, "result": kept, **order})
    source = _lesson_source(project)

    def finish(output: Path) -> None:
        with project.lock:
            numbers = [int(path.stem.partition("-")[2]) for path in project.folder.glob("learned-*.json")]
            number = 1 + max((*numbers, *project.history.known.learned), default=0)
            for take in project.takes:
                made = output / f"{take.id or 'first'}.json"
                if made.is_file() and take.id in made_from:
                    studio.keep_result(take, made, made_from[take.id] | {"learned": number}, number)
            shutil.copyfile(output / work.MODEL, project.file(numbered("learned", number, ".safetensors")))
            about = read_json(output / work.ABOUT) | {"from": source}
            write_json(project.file(numbered("learned", number)), about)
            project.history = project.history.edited(Learned(op="learn", number=number))
            _forget(project)

    order = {"flow": orders[0]["flow"], "options": orders[0]["options"], "videos": orders}
    return studio.start(project, "learn", order, finish)


def _lesson_source(project: Project) -> dict[str, Any]:
    """Return what a task model is learnt from, by video."""
    return {take.id: [one.to_json() for one in take.corrections] for take in project.takes if take.is_checked}


def _lesson(project: Project) -> models.Lesson | None:
    about = learned_about(project)
    if about is None:
        return None
    gain, error = about.get("gain") or (None, None)
    return models.Lesson(
        number=project.history.known.learned[-1],
        current=about.get("from") == _lesson_source(project),
        videos=about["videos"],
        checked=about["labelled"],
        chosen=about["chosen"],
        gain=gain,
        error=error,
        words=about.get("words", []),
    )


def _forget(project: Project) -> None:
    """Remove models and results that no undo or redo leads to."""
    history = project.history
    held = {*history.known.learned, *(one.number for one in history.entries if isinstance(one, Learned))}
    folders = [project.folder, *(take.folder for take in project.takes if take.id)]
    for path in (path for folder in folders for path in folder.glob("*-*.*")):
        kind, _, number = path.stem.partition("-")
        if kind in ("learned", "result", "previous", "check") and number.isdecimal() and int(number) not in held:
            path.unlink(missing_ok=True)
