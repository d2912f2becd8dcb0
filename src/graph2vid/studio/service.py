"""What the studio does with its projects: the functions behind the API."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph2vid._files import read_bytes, read_json, write_bytes, write_json
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.flow import FlowGraph, colour_of
from graph2vid.grounding import Grounding, OrderCheck
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models, work
from graph2vid.studio.corrections import Correction, usable
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import Replace
from graph2vid.studio.graph_layout import orders, picture
from graph2vid.studio.history import History
from graph2vid.studio.jobs import Job, Jobs
from graph2vid.studio.places import inside, kind_of, media_in
from graph2vid.studio.projects import About, Media, Project, Projects, UnknownError

_RESULT, _PREVIOUS, _CHECK = "result.json", "previous.json", "check.json"


@dataclass
class Studio:
    """The projects, the folder of videos, and the jobs.

    Attributes
    ----------
    projects : Projects
    jobs : Jobs
    videos : Path or None
        The folder whose videos can be chosen.
    upload_limit : int
        Bytes of a file that is handed in.
    """

    projects: Projects
    jobs: Jobs
    videos: Path | None
    upload_limit: int

    # -- media -----------------------------------------------------------------------------------------------

    def media(self, project: Project) -> Iterator[models.MediaFile]:
        """List what can be chosen for a project."""
        places: list[tuple[models.Place, Path]] = [("upload", project.media)]
        if self.videos is not None:
            places.append(("folder", self.videos))
        for place, folder in places:
            for name, kind, size in media_in(folder):
                yield models.MediaFile(place=place, name=name, kind=kind, bytes=size)  # type: ignore[arg-type]
        for path in (NarratedFiles().video, NarratedFiles().captions):
            size = path.stat().st_size
            yield models.MediaFile(place="sample", name=path.name, kind=kind_of(path.name), bytes=size)  # type: ignore[arg-type]

    def path_of(self, project: Project, media: Media) -> Path:
        """Return the path of a file that a project uses."""
        folder = {"upload": project.media, "folder": self.videos, "sample": NarratedFiles().folder}.get(media.place)
        if folder is None:
            raise UnknownError("no folder of videos was named when the studio was started (--videos)")
        path = inside(folder, media.name)
        if kind_of(media.name) is None or not path.is_file():
            raise UnknownError(f"{media.name} is not there any more: choose another file")
        return path

    def choose(self, project: Project, choice: models.MediaChoice | None, kind: str) -> Media | None:
        """Return a choice as the project keeps it; it must be there, and of this kind."""
        if choice is None:
            return None
        media = Media(choice.place, choice.name)
        if kind_of(media.name) != kind:
            raise InputError(f"{media.name} is no {'video' if kind == 'video' else 'caption file (.vtt, .srt, .json)'}")
        self.path_of(project, media)
        return media

    def _chosen(self, project: Project, media: Media | None) -> models.Chosen | None:
        if media is None:
            return None
        try:
            self.path_of(project, media)
            there = True
        except InputError:
            there = False
        return models.Chosen(place=media.place, name=media.name, there=there)  # type: ignore[arg-type]

    # -- states ----------------------------------------------------------------------------------------------

    @staticmethod
    def flow_state(history: History) -> dict[str, Any]:
        """Return what the editor shows."""
        draft = history.draft
        return {
            "revision": history.revision,
            "can_undo": history.at > 0,
            "can_redo": history.at < len(history.entries),
            "flow": None if draft is None else draft.to_json(),
            "orders": None if draft is None else orders(draft),
            "picture": None if draft is None else picture(draft),
        }

    def state(self, project: Project) -> dict[str, Any]:
        """Return all about a project."""
        about = project.about
        return {
            **self.flow_state(project.history),
            "name": project.name,
            "title": about.title,
            "procedure": project.procedure,
            "parser": about.parser,
            "embedder": about.embedder,
            "clip_seconds": about.clip_seconds,
            "video": self._chosen(project, about.video),
            "captions": self._chosen(project, about.captions),
            "corrections": self.correction_states(project),
            "result": self._result_state(project),
            "job": self.job_state(project),
        }

    @staticmethod
    def correction_states(project: Project) -> list[dict[str, Any]]:
        """Return the corrections of a project."""
        draft = project.draft
        ids = set() if draft is None else {*draft.flow.ids}
        return [
            correction.to_json()
            | {"words": correction.words, "applies": correction.step is None or correction.step in ids}
            for correction in project.corrections
        ]

    def _result_state(self, project: Project) -> dict[str, Any] | None:
        path = project.file(_RESULT)
        if not path.is_file():
            return None
        try:
            is_current = self.result(project).options.get("studio") == self._order(project)[1]
        except Graph2VidError:
            is_current = False
        files = [file for file in (path, project.file(_CHECK)) if file.is_file()]
        return {"current": is_current, "made": max(file.stat().st_mtime for file in files)}

    def job_state(self, project: Project) -> dict[str, Any] | None:
        """Return the last job of a project; one that a killed server left behind is ``interrupted``."""
        job = self.jobs.of(project)
        if job is not None:
            return job.to_json()
        kept = project.job
        if kept is None:
            return None
        state: dict[str, Any] = {
            "id": "",
            "project": project.name,
            "stage": "",
            "done": None,
            "total": None,
            "warnings": [],
        }
        state |= {key: str(kept.get(key, "")) for key in ("kind", "state", "message")}
        if state["state"] not in ("done", "failed", "cancelled"):
            state |= {"state": "interrupted", "message": "the studio was ended while this ran: run it again"}
        return state

    # -- jobs ------------------------------------------------------------------------------------------------

    def parse(self, project: Project, parser: str) -> Job:
        """Let a parser find the flow graph of the procedure; its graph takes the place of the present one."""
        text = project.procedure
        if not text.strip():
            raise InputError("there is no procedure yet: write, paste or open one")

        def finish(output: Path) -> None:
            document = read_json(output / work.PARSE)
            draft = Draft.from_parse(document)
            with project.lock:
                project.change(parser=parser, title=project.about.title or draft.flow.title[:200])
                entry = Replace(op="replace", source=f"parser {parser}", flow=draft.to_json())
                project.history = project.history.edited(entry)

        return self._start(project, "parse", {"text": text, "parser": parser}, finish)

    def ground(self, project: Project) -> Job:
        """Say when each step happens, with the graph, the media and the corrections as they are now."""
        order, made_from = self._order(project)

        def finish(output: Path) -> None:
            document = read_json(output / work.RESULT)
            document["options"]["studio"] = made_from
            with project.lock:
                project.file(_CHECK).unlink(missing_ok=True)  # it is about the result before
                if project.file(_RESULT).is_file():
                    write_bytes(project.file(_PREVIOUS), read_bytes(project.file(_RESULT)))
                write_json(project.file(_RESULT), document)

        return self._start(project, "ground", order, finish)

    def check(self, project: Project) -> Job:
        """Say where the video does not follow the procedure, as far as the result tells."""
        self.result(project)

        def finish(output: Path) -> None:
            write_json(project.file(_CHECK), read_json(output / work.CHECK))

        return self._start(project, "check", {"result": str(project.file(_RESULT))}, finish)

    def _order(self, project: Project) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the order to ground a project, and what the result is made from."""
        about, draft = project.about, project.draft
        if draft is None:
            raise InputError("there is no flow graph yet: parse a procedure, or open a flow graph")
        if about.video is None and about.captions is None:
            raise InputError("choose a video, or captions, first")
        flow = replace(draft.flow, title=about.title)
        corrections = [correction.to_json() for correction in usable(project.corrections, flow)]
        options = {"embedder": about.embedder, "clip_seconds": about.clip_seconds}
        order = {
            "flow": flow.to_json(),
            "corrections": corrections,
            "video": about.video and str(self.path_of(project, about.video)),
            "captions": about.captions and str(self.path_of(project, about.captions)),
            "options": options,
        }
        media = {"video": _named(about.video), "captions": _named(about.captions)}
        made_from = {"flow": order["flow"], "corrections": corrections, **media}
        return order, made_from | options

    def _start(self, project: Project, kind: str, order: dict[str, Any], finish: Any) -> Job:
        output = project.folder / f".job-{uuid4().hex}"

        def note(state: str, message: str) -> None:
            with project.lock:
                if not project.folder.is_dir():  # it was deleted meanwhile
                    return
                project.job = {"kind": kind, "state": state, "message": message}
                if state != "running":
                    shutil.rmtree(output, ignore_errors=True)

        return self.jobs.start(Job(kind, project.name, project, {**order, "output": str(output)}, finish, note))

    # -- results ---------------------------------------------------------------------------------------------

    def result(self, project: Project) -> Grounding:
        """Return the grounding of a project; its video is that of the project, if it still is there."""
        path = project.file(_RESULT)
        if not path.is_file():
            raise UnknownError("there is no result yet: ground the video first")
        return replace(Grounding.from_json(read_json(path), source=f"{project.name}/{_RESULT}"), video=None)

    def video(self, project: Project, of_result: bool) -> Path:
        """Return the video that is chosen, or the one that the result is about."""
        media = project.about.video
        if of_result:
            made_from = self.result(project).options.get("studio")
            media = Media.from_json(made_from.get("video") if isinstance(made_from, dict) else None, _RESULT)
        if media is None:
            raise UnknownError("this project has no video")
        return self.path_of(project, media)

    def checked(self, project: Project) -> dict[str, Any] | None:
        """Return what the check of the result found, as it was written; None if there was none."""
        path = project.file(_CHECK)
        found: dict[str, Any] | None = read_json(path) if path.is_file() else None
        return found

    def check_of(self, project: Project, flow: FlowGraph) -> OrderCheck | None:
        """Return the same for the view of a result with this flow graph."""
        try:
            found = self.checked(project)
            return None if found is None else OrderCheck.from_json(found, flow, source=f"{project.name}/{_CHECK}")
        except Graph2VidError:  # damaged; it can be made again
            return None

    def compared(self, project: Project, grounding: Grounding) -> dict[str, Grounding]:
        """Return the result before this one, where it has the same steps."""
        path = project.file(_PREVIOUS)
        try:
            before = Grounding.from_json(read_json(path)) if path.is_file() else None
        except Graph2VidError:  # damaged; it is nothing but a comparison
            return {}
        return {} if before is None or before.flow.ids != grounding.flow.ids else {"before": before}


def _named(media: Media | None) -> dict[str, str] | None:
    return None if media is None else {"place": media.place, "name": media.name}


def flow_from_file(data: bytes, name: str) -> FlowGraph:
    """Read a flow graph that is handed in; the suffix of its name says in which format."""
    suffix = Path(name).suffix.lower()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"flow{suffix}"
        path.write_bytes(data)
        try:
            return FlowGraph.load(path)
        except Graph2VidError as error:
            raise type(error)(str(error).replace(str(path), name or "the file")) from None


def summary(project: Project) -> models.ProjectSummary:
    """Return the entry of a project in the list."""
    has_result, problem, steps = False, "", 0
    bar: list[tuple[float, float, str]] = []
    about = About()
    try:
        about = project.about
        steps = 0 if project.draft is None else len(project.draft.flow)
        has_result = project.file(_RESULT).is_file()
        bar = _bar(read_json(project.file(_RESULT))) if has_result else []
    except Graph2VidError as error:
        problem = str(error)
    video = about.video or about.captions
    return models.ProjectSummary(
        name=project.name,
        title=about.title,
        steps=steps,
        video=video.name if video else "",
        has_result=has_result,
        bar=bar,
        changed=project.changed,
        problem=problem,
    )


def _bar(document: Any) -> list[tuple[float, float, str]]:
    """Return the segments of a grounding as shares of the video, with the colours of their steps."""
    grounding = Grounding.from_json(document)
    share = 1.0 / (grounding.duration or 1.0)
    return [
        ((part.start - grounding.offset) * share, (part.end - grounding.offset) * share, colour_of(part.step))
        for part in grounding.segments
    ]


def correction_of(request: models.NewCorrection, project: Project) -> Correction:
    """Return the correction that is asked for; its step must be in the graph."""
    correction = Correction.from_json(request.model_dump())
    if correction.step is not None:
        if project.draft is None:
            raise InputError("there is no flow graph yet")
        project.draft.flow.index(correction.step)
    return correction
