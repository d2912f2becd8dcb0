"""The routes of the API: projects, procedures, flow graphs, media, jobs, results, corrections and exports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as FromPath
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from graph2vid import __version__
from graph2vid._files import read_json
from graph2vid.errors import InputError
from graph2vid.evidence import read_captions
from graph2vid.grounding import FORMATS, Grounding, export
from graph2vid.report import page, view_model
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models, places
from graph2vid.studio.corrections import with_correction
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import History, Replace
from graph2vid.studio.jobs import Job
from graph2vid.studio.projects import Media, Project, UnknownError
from graph2vid.studio.service import Studio, correction_of, flow_from_file, summary
from graph2vid.studio.work import in_words
from graph2vid.text import PARSERS, decoded, procedure_from_bytes

MOST_TEXT = 1 << 20
"""Bytes of a procedure or flow graph that is handed in."""

_REFRESH = 0.1  # seconds between two looks at a job
_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".ogv": "video/ogg",
    ".avi": "video/x-msvideo",
}


_TITLES = {
    "youtube": "YouTube chapters, for the description",
    "vtt": "Chapters for web players (WebVTT)",
    "srt": "Steps as subtitles (SRT)",
    "csv": "Table (CSV)",
    "json": "Everything, for graph2vid (JSON)",
    "elan": "ELAN annotation",
    "label-studio": "Label Studio task",
    "label-studio-config": "Label Studio labels",
    "via3": "VIA 3 project",
    "ffmetadata": "Chapters for FFmpeg",
    "matroska": "Chapters for Matroska",
    "podcast": "Chapters for podcasts",
    "losslesscut": "Segments for LosslessCut",
    "schema-org": "Clips for search engines (schema.org)",
    "howto": "How-to for search engines (schema.org)",
    "recipe": "Recipe for search engines (schema.org)",
    "createml": "Create ML labels",
    "lerobot": "LeRobot subtasks",
    "rttm": "Segments as RTTM",
    "crosstask": "CrossTask annotation",
}
"""What people call the formats, in the order of a menu."""


class TooMuchError(InputError):
    """More was sent than is taken."""

    status = 413


class WrongKindError(InputError):
    """A file is not of a kind that is taken."""

    status = 415


class StaleError(InputError):
    """Something has changed since the sender looked at it."""

    status = 409


# -- what the routes share ---------------------------------------------------------------------------------------


def _refused(**reasons: str) -> dict[int | str, dict[str, Any]]:
    """Return how a route may refuse, by status: ``_404="There is no such thing"``."""
    return {int(status[1:]): {"model": models.Problem, "description": why} for status, why in reasons.items()}


STALE = _refused(_409="It has changed meanwhile")
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
RAW = {"requestBody": {"required": True, "content": _BYTES}}

router = APIRouter(prefix="/api", responses=_refused(_404="There is no such thing", _422="Not usable, and why"))


def studio_of(request: Request) -> Studio:
    """Return the studio behind the application."""
    found: Studio = request.app.state.studio
    return found


InStudio = Annotated[Studio, Depends(studio_of)]
ProjectName = Annotated[str, FromPath(description="The name of a project, as GET /api/projects lists it")]


def project_of(studio: InStudio, project: ProjectName) -> Project:
    """Return the project that the path names."""
    return studio.projects.open(project)


InProject = Annotated[Project, Depends(project_of)]


def job_of(studio: InStudio, job: str) -> Job:
    """Return the job that the path names."""
    if (found := studio.jobs.get(job)) is None:
        raise UnknownError(f"there is no job {job[:80]!r}")
    return found


InJob = Annotated[Job, Depends(job_of)]
FileName = Annotated[str, Query(max_length=300, description="The name of the file; its suffix says what it is")]
Revision = Annotated[
    int | None, Query(description="With it the request is refused (409) if the graph has changed since")
]
Words = Annotated[str | None, Query(description="Its words: with them it is refused (409) if another stands there now")]


def _told(job: Job) -> models.JobState:
    return models.JobState(**job.to_json())


async def body_of(request: Request) -> bytes:
    """Return the procedure or flow graph that was sent."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_TEXT:
            raise TooMuchError(f"this is larger than {MOST_TEXT >> 20} MiB")
    return bytes(data)


# -- projects, procedures and flow graphs ------------------------------------------------------------------------


@router.get("/about", summary="What this studio is and can do")
def about(studio: InStudio) -> models.About:
    return models.About(
        version=__version__,
        settings=[
            models.Setting(name=one.name, help=one.about.help, kind=one.kind.__name__, default=one.default)
            for one in models.SETTINGS
        ],
        parsers=list(PARSERS),
        formats={name: FORMATS.get(name).suffix for name in FORMATS},
        titles={name: title for name, title in _TITLES.items() if name in FORMATS}
        | {name: name for name in FORMATS if name not in _TITLES},
        videos=studio.videos is not None,
        upload_limit=studio.upload_limit,
        suffixes={"video": list(places.VIDEO_SUFFIXES), "captions": list(places.CAPTION_SUFFIXES)},
    )


@router.get("/projects", summary="All projects, the one changed last first")
def projects(studio: InStudio) -> list[models.ProjectSummary]:
    return [summary(project) for project in studio.projects]


@router.post("/projects", status_code=201, summary="Make a project")
def create(studio: InStudio, wanted: models.NewProject) -> models.ProjectState:
    return studio.state(studio.projects.create(wanted.title.strip()))


@router.post("/projects/sample", status_code=201, summary="Make a project with the bundled recipe and video")
def create_sample(studio: InStudio) -> models.ProjectState:
    files = NarratedFiles()
    text = files.text.read_text(encoding="utf-8")
    video, captions = (Media("sample", path.name) for path in (files.video, files.captions))
    return studio.state(studio.projects.create(text.splitlines()[0], text, video=video, captions=captions))


@router.get("/projects/{project}", summary="All about a project")
def state(studio: InStudio, project: InProject) -> models.ProjectState:
    return studio.state(project)


@router.patch("/projects/{project}", summary="Change title, media and settings")
def change(studio: InStudio, project: InProject, wanted: models.ProjectChange) -> models.ProjectState:
    changes = wanted.model_dump(include=wanted.model_fields_set, exclude={"title"} if wanted.title is None else None)
    for kind in {"video", "captions"} & changes.keys():
        changes[kind] = studio.choose(project, getattr(wanted, kind), kind)
    project.change(**changes)
    return studio.state(project)


@router.delete("/projects/{project}", status_code=204, summary="Delete a project and all its files")
def delete(studio: InStudio, project: InProject) -> None:
    if (job := studio.jobs.of(project)) is not None:
        studio.jobs.cancel(job)
    studio.projects.delete(project.name)


@router.put("/projects/{project}/procedure", summary="Write the procedure: text, Markdown, a web page or JSON-LD",
            openapi_extra=RAW)  # fmt: skip
async def write_procedure(
    studio: InStudio, project: InProject, request: Request, name: FileName = ""
) -> models.ProjectState:
    data = await body_of(request)

    def write() -> models.ProjectState:
        source = name or "the procedure"
        if data.strip():
            procedure_from_bytes(data, source=source)  # says what is wrong with it
        project.procedure = decoded(data, source)
        return studio.state(project)

    return await run_in_threadpool(write)


@router.post("/projects/{project}/parse", status_code=202, summary="Find the flow graph of the procedure (a job)")
def parse(studio: InStudio, project: InProject, wanted: models.ParseRequest) -> models.JobState:
    PARSERS.get(wanted.parser)
    return _told(studio.parse(project, wanted.parser))


@router.get("/projects/{project}/flow", summary="The flow graph, as `graph2vid parse -o` writes it")
def flow(project: InProject) -> dict[str, Any]:
    if project.draft is None:
        raise UnknownError("there is no flow graph yet")
    return project.draft.to_json()


@router.put("/projects/{project}/flow", summary="Put a flow graph in place: .json, .flow, .txt, .dot or .gv",
            openapi_extra=RAW)  # fmt: skip
async def write_flow(studio: InStudio, project: InProject, request: Request, name: FileName) -> models.FlowState:
    data = await body_of(request)

    def write() -> models.FlowState:
        draft = Draft(flow_from_file(data, name))
        with project.lock:
            project.history = project.history.edited(Replace(op="replace", source=name, flow=draft.to_json()))
            if not project.about.title and draft.flow.title:
                project.change(title=draft.flow.title[:200])
            return studio.flow_state(project.history)

    return await run_in_threadpool(write)


def _edited(
    studio: Studio, project: Project, seen: int | None, change: Callable[[History], History]
) -> models.FlowState:
    """Change the graph; refuse what was meant for another state of it than the present one."""
    with project.lock:
        if seen is not None and seen != project.history.revision:
            raise StaleError("the graph has been changed elsewhere meanwhile: look at it again")
        project.history = change(project.history)
        return studio.flow_state(project.history)


@router.post("/projects/{project}/edits", summary="Edit the flow graph", responses=STALE)
def edit(studio: InStudio, project: InProject, wanted: models.EditRequest) -> models.FlowState:
    return _edited(studio, project, wanted.revision, lambda history: history.edited(wanted.edit))


@router.post("/projects/{project}/undo", summary="Undo the last edit", responses=STALE)
def undo(studio: InStudio, project: InProject, revision: Revision = None) -> models.FlowState:
    return _edited(studio, project, revision, History.undone)


@router.post("/projects/{project}/redo", summary="Redo what was undone last", responses=STALE)
def redo(studio: InStudio, project: InProject, revision: Revision = None) -> models.FlowState:
    return _edited(studio, project, revision, History.redone)


# -- videos and captions -----------------------------------------------------------------------------------------


@router.get("/projects/{project}/media", summary="Videos and captions that can be chosen")
def media(studio: InStudio, project: InProject) -> list[models.MediaFile]:
    return list(studio.media(project))


@router.put("/projects/{project}/media/{name}", status_code=201, summary="Hand in a video or captions",
            openapi_extra=RAW,
            responses=_refused(_413="Too large", _415="Not a video, nor captions"))  # fmt: skip
async def upload(studio: InStudio, project: InProject, name: str, request: Request) -> models.MediaFile:
    name = places.upload_name(name)
    kind = places.kind_of(name)
    if kind is None:
        video, captions = (", ".join(some) for some in (places.VIDEO_SUFFIXES, places.CAPTION_SUFFIXES))
        raise WrongKindError(f"{name} is neither a video ({video}) nor captions ({captions})")
    most = studio.upload_limit if kind == "video" else min(places.MOST_CAPTIONS, studio.upload_limit)
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise TooMuchError(f"{name} is larger than the {most >> 20} MiB that are taken")
    folder = project.folder / f".upload-{uuid4().hex}"
    folder.mkdir()
    part = folder / name
    try:
        size = await _received(request, part, kind, most)
        if kind == "captions" and not await run_in_threadpool(read_captions, part):
            raise InputError(f"{name}: nothing is said in these captions")
        with project.lock:
            project.media.mkdir(exist_ok=True)
            part.replace(project.file(f"media/{name}"))
    except InputError as error:
        raise type(error)(str(error).replace(str(part), name)) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return models.MediaFile(place="upload", name=name, kind=kind, bytes=size)  # type: ignore[arg-type]


async def _received(request: Request, path: Path, kind: str, most: int) -> int:
    """Write what is sent to a file, as long as it is what it should be; return its size."""
    size, head = 0, b""
    with path.open("wb") as file:
        async for piece in request.stream():
            size += len(piece)
            head = (head + piece)[:64] if len(head) < 64 else head
            if size > most:
                raise TooMuchError(f"{path.name} is larger than the {most >> 20} MiB that are taken")
            if len(head) >= 16:
                _check_head(path, kind, head)
            await run_in_threadpool(file.write, piece)
        file.flush()
        await run_in_threadpool(os.fsync, file.fileno())
    _check_head(path, kind, head)
    return size


def _check_head(path: Path, kind: str, head: bytes) -> None:
    if kind == "video" and not places.begins_like_video(head):
        raise WrongKindError(f"{path.name} is named like a video and is none")


@router.delete("/projects/{project}/media/{name}", status_code=204, summary="Delete a file that was handed in")
def delete_media(project: InProject, name: str) -> None:
    path = project.file(f"media/{places.upload_name(name)}")
    if not path.is_file():
        raise UnknownError(f"there is no {name}")
    with project.lock:
        about = project.about
        gone = Media("upload", name)
        project.change(**{key: None for key in ("video", "captions") if getattr(about, key) == gone})
        path.unlink()


@router.get("/projects/{project}/video", summary="The video that is chosen; ranges are served",
            response_class=FileResponse)  # fmt: skip
def video(studio: InStudio, project: InProject) -> FileResponse:
    return _played(studio.video(project, of_result=False))


@router.get("/projects/{project}/result/video", summary="The video of the result; ranges are served",
            response_class=FileResponse)  # fmt: skip
def result_video(studio: InStudio, project: InProject) -> FileResponse:
    return _played(studio.video(project, of_result=True))


def _played(path: Path) -> FileResponse:
    kind = _TYPES.get(path.suffix.lower(), "application/octet-stream")
    return FileResponse(path, media_type=kind, headers={"cache-control": "private, no-cache"})


# -- jobs, results, corrections and exports ----------------------------------------------------------------------


@router.post("/projects/{project}/ground", status_code=202, summary="Ground the video (a job)")
def ground(studio: InStudio, project: InProject) -> models.JobState:
    return _told(studio.ground(project))


@router.get("/jobs/{job}", summary="How far a job is")
def job_state(job: InJob) -> models.JobState:
    return _told(job)


@router.delete("/jobs/{job}", summary="Cancel a job")
def cancel(studio: InStudio, job: InJob) -> models.JobState:
    studio.jobs.cancel(job)
    return _told(job)


@router.get("/jobs/{job}/events", summary="How far a job is, as server-sent events until it ends",
            response_class=StreamingResponse)  # fmt: skip
async def events(job: InJob) -> StreamingResponse:
    async def lines() -> AsyncIterator[str]:
        seen = -1
        while True:
            over = job.is_over
            if job.version != seen or over:
                seen = job.version
                yield f"data: {json.dumps(job.to_json())}\n\n"
            if over:
                return
            await asyncio.sleep(_REFRESH)

    return StreamingResponse(lines(), media_type="text/event-stream")


@router.get("/projects/{project}/result", summary="The grounding, as `graph2vid ground -o` writes it")
def result(studio: InStudio, project: InProject) -> dict[str, Any]:
    studio.result(project)
    return read_json(project.file("result.json"))  # type: ignore[no-any-return]


@router.post("/projects/{project}/check", status_code=202,
             summary="Say where the video does not follow the procedure (a job)")  # fmt: skip
def check(studio: InStudio, project: InProject) -> models.JobState:
    return _told(studio.check(project))


@router.get("/projects/{project}/check", summary="What the check found, as `graph2vid check --json` writes it")
def checked(studio: InStudio, project: InProject) -> dict[str, Any]:
    if (found := studio.checked(project)) is None:
        raise UnknownError("this result has not been checked yet")
    return found


def _with_video(studio: Studio, project: Project) -> Grounding:
    """Return the grounding of a project with the path of its video, if that still is there."""
    grounding = studio.result(project)
    with contextlib.suppress(InputError):
        grounding = replace(grounding, video=str(studio.video(project, of_result=True)))
    return grounding


def _by_name(grounding: Grounding) -> Grounding:
    """Return it with the mere name of the video: where that lies is nobody's concern."""
    return replace(grounding, video=grounding.video and Path(grounding.video).name)


@router.get("/projects/{project}/view", summary="The grounding as the result view draws it")
def view(studio: InStudio, project: InProject) -> dict[str, Any]:
    grounding = _with_video(studio, project)
    url = f"/api/projects/{project.name}/result/video" if grounding.video else None
    beside = studio.beside(project, grounding)
    return view_model(_by_name(grounding), **beside, video_url=url, numbers=studio.numbers(project))


@router.get("/projects/{project}/corrections", summary="What a person knows about the video")
def corrections(studio: InStudio, project: InProject) -> list[models.CorrectionState]:
    return studio.correction_states(project)


@router.post("/projects/{project}/corrections", status_code=201,
             summary="Add a correction; one that contradicts another is refused, and names that")  # fmt: skip
def correct(studio: InStudio, project: InProject, wanted: models.NewCorrection) -> list[models.CorrectionState]:
    with project.lock:
        new = correction_of(wanted, project)
        flow = None if project.draft is None else project.draft.flow
        project.corrections = with_correction(project.corrections, new, flow)
        return corrections(studio, project)


@router.delete("/projects/{project}/corrections/{number}", summary="Take a correction back, by its place in the list",
               responses=STALE)  # fmt: skip
def uncorrect(studio: InStudio, project: InProject, number: int, words: Words = None) -> list[models.CorrectionState]:
    with project.lock:
        known = project.corrections
        if not 0 <= number < len(known):
            raise UnknownError(f"there is no correction {number}")
        if words is not None and words != known[number].words:
            raise StaleError("the corrections have been changed elsewhere meanwhile: look at them again")
        project.corrections = (*known[:number], *known[number + 1 :])
        return corrections(studio, project)


@router.get("/projects/{project}/export/{format}", summary="The grounding in another format",
            response_class=Response)  # fmt: skip
def exported(studio: InStudio, project: InProject, format: str) -> Response:
    made = export(_with_video(studio, project), format)
    headers = _attachment(f"{project.name}{FORMATS.get(format).suffix}")
    if made.notes:
        headers["x-graph2vid-notes"] = quote("\n".join(made.notes))
    return Response(made.text, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/projects/{project}/report", summary="The report: one self-contained page", response_class=Response)
def report(
    studio: InStudio,
    project: InProject,
    embed: Annotated[bool, Query(description="Put the video into the page")] = False,
) -> Response:
    grounding = _with_video(studio, project)
    shown = grounding if embed else _by_name(grounding)
    try:
        made = page(shown, **studio.beside(project, grounding), embed_video=embed)
    except InputError as error:
        name = _by_name(grounding).video
        raise InputError(in_words(str(error).replace(str(grounding.video), str(name)))) from None
    return Response(made, media_type="text/html; charset=utf-8", headers=_attachment(f"{project.name}.html"))


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
