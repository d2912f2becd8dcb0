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
from graph2vid.flow import FlowGraph, colour_of, ink_on, lay_out
from graph2vid.flow.svg import wrapped
from graph2vid.grounding import Grounding, OrderCheck
from graph2vid.report import conflicts_of, drawn_plan, mark_of
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models, work
from graph2vid.studio.corrections import Correction, usable
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import History, Replace
from graph2vid.studio.jobs import Job, Jobs
from graph2vid.studio.places import inside, kind_of, media_in
from graph2vid.studio.projects import About, Media, Project, Projects, UnknownError
from graph2vid.tsort import count_sorts

_TEXT_SIZE, _LINE, _TEXT_WIDTH, _MOST_LINES = 14.0, 19.0, 176.0, 4
_BOX_WIDTH = _TEXT_WIDTH + 34.0
_HEAD, _FOOT = 34.0, 14.0
_COUNT_LIMIT = 2**15  # ideals; the count is shown while the graph is edited, and must not be waited for
_SAMPLE = NarratedFiles()
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
            redo_words=history.redo_words,
            **dict(zip(("flow", "orders", "picture"), drawn, strict=True)),
        )

    def state(self, project: Project) -> models.ProjectState:
        """Return all about a project."""
        about = project.about
        return models.ProjectState(
            **dict(self.flow_state(project.history)),
            **_settings(about),
            name=project.name,
            title=about.title,
            procedure=project.procedure,
            video=self._chosen(project, about.video),
            captions=self._chosen(project, about.captions),
            corrections=self.correction_states(project),
            result=self._result_state(project),
            job=self.job_state(project),
        )

    @staticmethod
    def correction_states(project: Project) -> list[models.CorrectionState]:
        """Return the corrections of a project."""
        ids = set() if project.draft is None else {*project.draft.flow.ids}
        return [
            models.CorrectionState(**one.to_json(), words=one.words, applies=one.step is None or one.step in ids)
            for one in project.corrections
        ]

    def _result_state(self, project: Project) -> models.ResultState | None:
        files = [file for file in (project.file(_RESULT), project.file(_CHECK)) if file.is_file()]
        if not project.file(_RESULT).is_file():
            return None
        outdated, conflicts = ["graph"], []
        with suppress(Graph2VidError):
            found = self.result(project)
            outdated = _differences(found.options.get("studio"), self._order(project)[1])
            ids, now = found.flow.ids, None if project.draft is None else project.draft.flow
            present = set() if now is None else {(now.ids[a], now.ids[b]) for a, b in now.edges}
            conflicts = [
                models.Relaxable(before=ids[one.before], after=ids[one.after], gain=one.gain, relieved=one.relieved)
                for one in conflicts_of(found)
                if (ids[one.before], ids[one.after]) in present
            ]
        made = max(file.stat().st_mtime for file in files)
        return models.ResultState(current=not outdated, outdated=outdated, made=made, conflicts=conflicts)

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
        # Results of the release before say that they were made with these two settings, whatever they are.
        by_default = _settings(About())
        always = ("embedder", "clip_seconds")
        options = {key: value for key, value in _settings(about).items() if key in always or value != by_default[key]}
        options.pop("parser", None)  # there is a flow graph
        order = {
            "flow": flow.to_json(),
            "corrections": corrections,
            "video": about.video and str(self.path_of(project, about.video)),
            "captions": about.captions and str(self.path_of(project, about.captions)),
            "options": options,
        }
        media = {"video": about.video and vars(about.video), "captions": about.captions and vars(about.captions)}
        return order, {"flow": order["flow"], "corrections": corrections, **media, **options}

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
        return read_json(path) if path.is_file() else None

    def beside(self, project: Project, grounding: Grounding) -> dict[str, Any]:
        """Return what is shown beside a result: its check, and the result before it where that has the same steps."""
        check, compare = None, {}
        with suppress(Graph2VidError):  # damaged; it can be made again
            if (found := self.checked(project)) is not None:
                check = OrderCheck.from_json(found, grounding.flow, source=f"{project.name}/{_CHECK}")
        with suppress(Graph2VidError):  # not there, or damaged; it is nothing but a comparison
            before = Grounding.from_json(read_json(project.file(_PREVIOUS)))
            compare = {"before": before} if before.flow.ids == grounding.flow.ids else {}
        return {"check": check, "compare": compare}


def _differences(was: Any, now: dict[str, Any]) -> list[str]:
    """Say what has changed since a result was made."""
    if not isinstance(was, dict):
        return ["graph"]
    named = {"flow": "graph", "video": "video", "captions": "captions", "corrections": "corrections"}
    changed = [named.get(key, "settings") for key in was.keys() | now.keys() if was.get(key) != now.get(key)]
    return [name for name in ("graph", "video", "captions", "settings", "corrections") if name in changed]


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


def summary(project: Project) -> models.ProjectSummary:
    """Return the entry of a project in the list."""
    found: dict[str, Any] = {"title": "", "steps": 0, "video": "", "has_result": False, "bar": [], "problem": ""}
    found |= {"doubtful": 0, "confidence": None}
    try:
        about = project.about
        video = about.video or about.captions
        found |= {"title": about.title, "video": video.name if video else ""}
        found["steps"] = 0 if project.draft is None else len(project.draft.flow)
        found["has_result"] = project.file(_RESULT).is_file()
        if found["has_result"]:
            result = Grounding.from_json(read_json(project.file(_RESULT)))
            begin, length = result.offset, result.duration or 1.0
            known = [part.confidence for part in result.segments if part.confidence is not None]
            found["doubtful"] = sum(part.is_doubtful for part in result.segments)
            found["confidence"] = round(sum(known) / len(known), 4) if known else None
            found["bar"] = [
                ((part.start - begin) / length, (part.end - begin) / length, colour_of(part.step))
                for part in result.segments
            ]
    except Graph2VidError as error:
        found["problem"] = str(error)
    return models.ProjectSummary(name=project.name, changed=project.changed, **found)


def correction_of(request: models.NewCorrection, project: Project) -> Correction:
    """Return the correction that is asked for; its step must be in the graph."""
    correction = Correction.from_json(request.model_dump())
    if correction.step is not None:
        if project.draft is None:
            raise InputError("there is no flow graph yet")
        project.draft.flow.index(correction.step)
    return correction


# -- the flow graph in the editor: where its steps lie, and how many orders it allows ------------------------------


def picture(draft: Draft) -> dict[str, Any]:
    """Return the boxes of the steps and the ways of the edges; steps by index, y downwards.

    Edges that others imply have ``implied`` and no way: they are drawn straight.
    """
    flow = draft.flow
    reduced = flow.transitive_reduction()
    lines = [wrapped(step.text or step.id, _TEXT_SIZE, _TEXT_WIDTH, _MOST_LINES) for step in flow.steps]
    plan = lay_out(reduced, [(_BOX_WIDTH, _HEAD + _LINE * len(texts) + _FOOT) for texts in lines])
    kept = set(reduced.edges)
    boxes = [
        {"lines": texts, "mark": mark_of(flow, step), "colour": colour_of(step), "ink": ink_on(colour_of(step))}
        for step, texts in enumerate(lines)
    ]
    return drawn_plan(
        plan, boxes, {edge: {"implied": edge not in kept, "confidence": flow.confidence[edge]} for edge in flow.edges}
    )


def orders(draft: Draft) -> dict[str, str | None]:
    """Return how many orders respect the graph."""
    count = count_sorts(draft.flow, _COUNT_LIMIT)
    between = dict.fromkeys((_written(count.lower), _written(count.upper)))
    words = "1 possible order" if count.exact == 1 else f"{' to '.join(between)} possible orders"
    exact = None if count.exact is None else str(count.exact)
    return {"exact": exact, "lower": str(count.lower), "upper": str(count.upper), "words": words}


def _written(number: int) -> str:
    """Write a number for people: with commas, or as a power of ten."""
    if number < 10**9:
        return f"{number:,}"
    digits = str(number)
    return f"{digits[0]}.{digits[1:3]} × 10^{len(digits) - 1}"
