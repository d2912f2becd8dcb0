"""What the studio does with its projects: the functions behind the API."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph2vid._files import read_bytes, read_json, write_bytes, write_json
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, OrderCheck
from graph2vid.report import conflicts_of
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models, work
from graph2vid.studio.corrections import Correction, usable
from graph2vid.studio.drafts import Draft
from graph2vid.studio.editor_picture import orders, picture
from graph2vid.studio.edits import History, Replace
from graph2vid.studio.jobs import Job, Jobs
from graph2vid.studio.places import inside, kind_of, media_in
from graph2vid.studio.projects import About, Media, Project, Projects, Take, UnknownError, numbered

_SAMPLE = NarratedFiles()


@dataclass
class Studio:
    """The projects, the folder of videos, and the jobs.

    Attributes
    ----------
    projects : Projects
    jobs, films : Jobs
        What people wait for, and what is made beside it: pictures and waveforms.
    videos : Path or None
        The folder whose videos can be chosen.
    upload_limit : int
        Bytes of a file that is handed in.
    """

    projects: Projects
    jobs: Jobs
    films: Jobs
    videos: Path | None
    upload_limit: int

    # -- media -----------------------------------------------------------------------------------------------

    def media(self, project: Project) -> Iterator[models.MediaFile]:
        """List what can be chosen for a project."""
        sample = [(file.name, kind_of(file.name), file.stat().st_size) for file in (_SAMPLE.video, _SAMPLE.captions)]
        found = {"upload": media_in(project.media), "folder": media_in(self.videos) if self.videos else ()}
        for place, files in (found | {"sample": sample}).items():
            for name, kind, size in files:
                yield models.MediaFile(place=place, name=name, kind=kind, bytes=size)  # type: ignore[arg-type]

    def path_of(self, project: Project, media: Media) -> Path:
        """Return the path of a file that a project uses."""
        folder = {"upload": project.media, "folder": self.videos, "sample": _SAMPLE.folder}.get(media.place)
        if folder is None:
            raise UnknownError("no folder of videos was named when the studio was started")
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
        there = False
        with suppress(InputError):
            there = media is not None and self.path_of(project, media).is_file()
        return None if media is None else models.Chosen(**vars(media), there=there)

    # -- states ----------------------------------------------------------------------------------------------

    @staticmethod
    def flow_state(history: History) -> models.FlowState:
        """Return what the editor shows."""
        draft = history.draft
        drawn: list[Any] = [None] * 3 if draft is None else [draft.to_json(), orders(draft), picture(draft)]
        return models.FlowState(
            revision=history.revision,
            can_undo=history.at > 0,
            can_redo=history.at < len(history.entries),
            undo_words=history.undo_words,
            undo_video=history.undo_video,
            redo_words=history.redo_words,
            **dict(zip(("flow", "orders", "picture"), drawn, strict=True)),
        )

    def state(self, take: Take) -> models.ProjectState:
        """Return all about a project, and about one of its videos."""
        project = take.project
        about = project.about
        video, captions = take.media
        return models.ProjectState(
            **dict(self.flow_state(project.history)),
            **_settings(about),
            name=project.name,
            title=about.title,
            procedure=project.procedure,
            procedure_revision=project.procedure_revision,
            shown=take.id,
            videos=[models.VideoName(id=one.id, title=one.title) for one in project.takes],
            video=self._chosen(project, video),
            captions=self._chosen(project, captions),
            corrections=self.correction_states(take),
            checked=take.is_checked,
            learned=take.learned,
            result=self._result_state(take),
            job=self.job_state(project),
        )

    @staticmethod
    def correction_states(take: Take) -> list[models.CorrectionState]:
        """Return the corrections of a video."""
        draft = take.project.draft
        ids = set() if draft is None else {*draft.flow.ids}
        return [
            models.CorrectionState(**one.to_json(), words=one.words, applies=one.step is None or one.step in ids)
            for one in take.corrections
        ]

    def _result_state(self, take: Take) -> models.ResultState | None:
        results = take.results()
        if not results:
            return None
        files = [file for file in (results[0][1], take.beside("check")) if file.is_file()]
        outdated, conflicts = ["graph"], []
        with suppress(Graph2VidError):
            found = self.result(take)
            outdated = self.outdated(take, found.options.get("studio"))
            draft = take.project.draft
            ids, now = found.flow.ids, None if draft is None else draft.flow
            present = set() if now is None else {(now.ids[a], now.ids[b]) for a, b in now.edges}
            conflicts = [
                models.Relaxable(before=ids[one.before], after=ids[one.after], gain=one.gain, relieved=one.relieved)
                for one in conflicts_of(found)
                if (ids[one.before], ids[one.after]) in present
            ]
        made = max(file.stat().st_mtime for file in files)
        return models.ResultState(current=not outdated, outdated=outdated, made=made, conflicts=conflicts)

    def outdated(self, take: Take, made_from: Any) -> list[str]:
        """Say what has changed since a result of a video was made."""
        try:
            return differences(made_from, self.order(take)[1], ("learned",) if take.is_checked else ())
        except Graph2VidError:
            return ["graph"]

    @staticmethod
    def numbers(project: Project) -> dict[str, int] | None:
        """Return the numbers of the steps as the graph is now, by their ids."""
        draft = project.draft
        return None if draft is None else {step: place for place, step in enumerate(draft.flow.ids, start=1)}

    def job_state(self, project: Project) -> Any:
        """Return the last job of a project, if any; one that a killed server left behind is ``interrupted``."""
        job, kept = self.jobs.of(project), project.job
        if job is not None or kept is None:
            return None if job is None else job.to_json()
        state = {key: str(kept.get(key, "")) for key in ("kind", "state", "message")}
        if state["state"] not in ("done", "failed", "cancelled"):
            state |= {"state": "interrupted", "message": "the studio was ended while this ran: run it again"}
        still: dict[str, Any] = {"done": None, "total": None, "seconds": 0.0, "warnings": []}
        return {"id": "", "project": project.name, "stage": "", **still, **state}

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

        return self.start(project, "parse", {"text": text, "parser": parser}, finish)

    def ground(self, take: Take) -> Job:
        """Say when each step happens, with the graph, the media and the corrections as they are now."""
        order, made_from = self.order(take)

        def finish(output: Path) -> None:
            self.keep_result(take, output / work.RESULT, made_from, take.learned)

        return self.start(take.project, "ground", order, finish)

    @staticmethod
    def keep_result(take: Take, made: Path, made_from: dict[str, Any], learned: int) -> None:
        """Put a result in the place of the one before, which is kept beside it."""
        document = read_json(made)
        document["options"]["studio"] = made_from
        with take.lock:
            take.folder.mkdir(parents=True, exist_ok=True)
            result, previous, check = (take.file(numbered(name, learned)) for name in ("result", "previous", "check"))
            check.unlink(missing_ok=True)  # it is about the result before
            if result.is_file():
                write_bytes(previous, read_bytes(result))
            write_json(result, document)

    def check(self, take: Take) -> Job:
        """Say where the video does not follow the procedure, as far as the result tells."""
        self.result(take)
        result, check = take.results()[0][1], take.beside("check")

        def finish(output: Path) -> None:
            write_json(check, read_json(output / work.CHECK))

        return self.start(take.project, "check", {"result": str(result)}, finish)

    def clips(self, take: Take) -> Job:
        """Cut a clip and a still of each step, into one archive."""
        self.result(take)
        order = {"result": str(take.results()[0][1]), "video": str(self.video(take, of_result=True))}

        def finish(output: Path) -> None:
            with take.lock:
                (output / work.CLIPS).replace(take.file(work.CLIPS))

        return self.start(take.project, "clips", order, finish)

    def order(self, take: Take) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the order to ground a video, and what the result is made from."""
        project = take.project
        about, draft = project.about, project.draft
        video, captions = take.media
        if draft is None:
            raise InputError("there is no flow graph yet: parse a procedure, or open a flow graph")
        if video is None and captions is None:
            raise InputError("choose a video, or captions, first")
        flow = replace(draft.flow, title=about.title)
        corrections = [correction.to_json() for correction in usable(take.corrections, flow)]
        # Results of the release before say that they were made with these two settings, whatever they are.
        by_default = _settings(About())
        always = ("embedder", "clip_seconds")
        options = {key: value for key, value in _settings(about).items() if key in always or value != by_default[key]}
        options.pop("parser", None)  # there is a flow graph
        order = {
            "flow": flow.to_json(),
            "corrections": corrections,
            "video": video and str(self.path_of(project, video)),
            "captions": captions and str(self.path_of(project, captions)),
            "options": options,
        }
        media = {"video": video and vars(video), "captions": captions and vars(captions)}
        made_from = {"flow": order["flow"], "corrections": corrections, **media, **options}
        known = learned_about(project)
        if known is not None and known.get("steps") == list(flow.texts):  # of other steps it says nothing
            order["adapted"] = str(project.file(numbered("learned", take.learned, ".safetensors")))
            made_from["learned"] = take.learned
        return order, made_from

    def start(self, project: Project, kind: str, order: dict[str, Any], finish: Any, part: Any = None) -> Job:
        """Start a job of a project; ``finish`` takes the folder of what it made, ``part`` the name of a part of it."""
        output = project.folder / f".job-{uuid4().hex}"

        def note(state: str, message: str) -> None:
            with project.lock:
                if not project.folder.is_dir():  # it was deleted meanwhile
                    return
                project.job = {"kind": kind, "state": state, "message": message}
                if state != "running":
                    shutil.rmtree(output, ignore_errors=True)

        job = Job(kind, project.name, project, {**order, "output": str(output)}, finish, note)
        job.part = part or job.part
        return self.jobs.start(job)

    # -- results ---------------------------------------------------------------------------------------------

    @staticmethod
    def result(take: Take) -> Grounding:
        """Return the grounding of a video; its ``video`` is None: where that lies is nobody's concern."""
        results = take.results()
        if not results:
            raise UnknownError("there is no result yet: ground the video first")
        path = results[0][1]
        return replace(Grounding.from_json(read_json(path), source=f"{take.project.name}/{path.name}"), video=None)

    def video(self, take: Take, of_result: bool) -> Path:
        """Return the video that is chosen, or the one that the result is about."""
        media = take.media[0]
        if of_result:
            made_from = self.result(take).options.get("studio")
            media = Media.from_json(made_from.get("video") if isinstance(made_from, dict) else None, "result.json")
        if media is None:
            raise UnknownError("this project has no video")
        return self.path_of(take.project, media)

    @staticmethod
    def checked(take: Take) -> dict[str, Any] | None:
        """Return what the check of the result found, as it was written; None if there was none."""
        path = take.beside("check")
        return read_json(path) if path.is_file() else None

    def beside(self, take: Take, grounding: Grounding) -> dict[str, Any]:
        """Return what is shown beside a result: its check, and the result before it where that has the same steps."""
        check, compare = None, {}
        with suppress(Graph2VidError):  # damaged; it can be made again
            if (found := self.checked(take)) is not None:
                check = OrderCheck.from_json(found, grounding.flow, source=f"{take.project.name}/check.json")
        older = [take.beside("previous"), *(path for _, path in take.results()[1:])]
        with suppress(Graph2VidError, StopIteration):  # not there, or damaged; it is nothing but a comparison
            before = Grounding.from_json(read_json(next(path for path in older if path.is_file())))
            compare = {"Before": before} if before.flow.ids == grounding.flow.ids else {}
        return {"check": check, "compare": compare}


def differences(was: Any, now: dict[str, Any], aside: tuple[str, ...] = ()) -> list[str]:
    """Say what has changed since a result was made; some of it is left ``aside``."""
    if not isinstance(was, dict):
        return ["graph"]
    named = {"flow": "graph", "video": "video", "captions": "captions", "corrections": "corrections"}
    named["learned"] = "learned"
    keys = (was.keys() | now.keys()) - {*aside}
    changed = [named.get(key, "settings") for key in keys if was.get(key) != now.get(key)]
    return [name for name in ("graph", "video", "captions", "settings", "corrections", "learned") if name in changed]


def _settings(about: About) -> dict[str, Any]:
    """Return the options that the studio sets, by name."""
    values = about.options.to_mapping()
    return {one.name: values[one.name] for one in models.SETTINGS}


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


def learned_about(project: Project) -> dict[str, Any] | None:
    """Return what the task model in use says of itself; None where nothing was learnt, or the file is damaged."""
    number = next(reversed(project.history.known.learned), 0)
    if number:
        with suppress(Graph2VidError):
            found = read_json(project.file(numbered("learned", number)))
            return found if isinstance(found, dict) else None
    return None


def correction_of(request: models.NewCorrection, project: Project) -> Correction:
    """Return the correction that is asked for; its step must be in the graph."""
    correction = Correction.from_json(request.model_dump())
    if correction.step is not None:
        if project.draft is None:
            raise InputError("there is no flow graph yet")
        project.draft.flow.index(correction.step)
    return correction
