"""The routes of projects, procedures, flow graphs and jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from graph2vid import __version__
from graph2vid.grounding import FORMATS
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models, places
from graph2vid.studio.asking import (
    BUSY,
    RAW,
    STALE,
    FileName,
    InJob,
    InProject,
    InStudio,
    InTake,
    ProcedureRevision,
    Revision,
    StaleError,
    body_of,
    new_router,
    told,
)
from graph2vid.studio.corpus import summary
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import History, Replace
from graph2vid.studio.projects import Media, Project, UnknownError
from graph2vid.studio.service import Studio, flow_from_file
from graph2vid.text import PARSERS, decoded, procedure_from_bytes

_REFRESH = 0.1  # seconds between two looks at a job

_TITLES = {
    "youtube": "YouTube chapters, for the description",
    "vtt": "Chapters for web players (WebVTT)",
    "srt": "Steps as subtitles (SRT)",
    "csv": "Table (CSV)",
    "json": "Everything, for graph2vid (JSON)",
    "elan": "ELAN annotation",
    "label-studio": "Label Studio task",
    "label-studio-config": "Label Studio labels",
    "cvat": "CVAT tracks",
    "cvat-labels": "CVAT labels",
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

router = new_router()


@router.get("/about", summary="What this studio is and can do")
def about(studio: InStudio) -> models.About:
    suffixes = {name: FORMATS.get(name).suffix for name in FORMATS}
    return models.About(
        version=__version__,
        settings=[
            models.Setting(name=one.name, help=one.about.help, kind=one.kind.__name__, default=one.default)
            for one in models.SETTINGS
        ],
        parsers=list(PARSERS),
        formats=suffixes,
        titles={name: title for name, title in _TITLES.items() if name in suffixes}
        | {name: name for name in suffixes if name not in _TITLES},
        videos=studio.videos is not None,
        upload_limit=studio.upload_limit,
        suffixes={"video": list(places.VIDEO_SUFFIXES), "captions": list(places.CAPTION_SUFFIXES)},
    )


@router.get("/projects", summary="All projects, the one changed last first")
def projects(studio: InStudio) -> list[models.ProjectSummary]:
    return [summary(project) for project in studio.projects]


@router.post("/projects", status_code=201, summary="Make a project")
def create(studio: InStudio, wanted: models.NewProject) -> models.ProjectState:
    return studio.state(studio.projects.create(wanted.title.strip()).take(""))


@router.post("/projects/sample", status_code=201, summary="Make a project with the bundled recipe and video")
def create_sample(studio: InStudio) -> models.ProjectState:
    files = NarratedFiles()
    text = files.text.read_text(encoding="utf-8")
    video, captions = (Media("sample", path.name) for path in (files.video, files.captions))
    return studio.state(studio.projects.create(text.splitlines()[0], text, video=video, captions=captions).take(""))


@router.get("/projects/{project}", summary="All about a project")
def state(studio: InStudio, take: InTake) -> models.ProjectState:
    return studio.state(take)


@router.patch("/projects/{project}", summary="Change title, media and settings")
def change(studio: InStudio, take: InTake, wanted: models.ProjectChange) -> models.ProjectState:
    changes = wanted.model_dump(include=wanted.model_fields_set, exclude={"title"} if wanted.title is None else None)
    kinds = {"video", "captions"} & changes.keys()
    media = {kind: studio.choose(take.project, getattr(wanted, kind), kind) for kind in kinds}
    with take.lock:
        take.project.change(**{name: value for name, value in changes.items() if name not in kinds})
        take.choose(**media)
    return studio.state(take)


@router.delete("/projects/{project}", status_code=204, summary="Delete a project and all its files")
def delete(studio: InStudio, project: InProject) -> None:
    if (job := studio.jobs.of(project)) is not None:
        studio.jobs.cancel(job)
    studio.projects.delete(project.name)


@router.put("/projects/{project}/procedure", summary="Write the procedure: text, Markdown, a web page or JSON-LD",
            openapi_extra=RAW, responses=STALE)  # fmt: skip
async def write_procedure(
    studio: InStudio, take: InTake, request: Request, name: FileName = "", revision: ProcedureRevision = None
) -> models.ProjectState:
    data = await body_of(request)

    def write() -> models.ProjectState:
        source = name or "the procedure"
        if data.strip():
            procedure_from_bytes(data, source=source)  # says what is wrong with it
        text = decoded(data, source)
        with take.lock:
            if revision is not None and revision != take.project.procedure_revision:
                raise StaleError("the procedure has been changed elsewhere meanwhile: load the page again to see it")
            take.project.procedure = text
            return studio.state(take)

    return await run_in_threadpool(write)


@router.post("/projects/{project}/parse", status_code=202, summary="Find the flow graph of the procedure (a job)",
             responses=BUSY)  # fmt: skip
def parse(studio: InStudio, project: InProject, wanted: models.ParseRequest) -> models.JobState:
    PARSERS.get(wanted.parser)
    return told(studio.parse(project, wanted.parser))


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


# -- jobs ----------------------------------------------------------------------------------------------------------


@router.get("/jobs/{job}", summary="How far a job is")
def job_state(job: InJob) -> models.JobState:
    return told(job)


@router.delete("/jobs/{job}", summary="Cancel a job")
def cancel(studio: InStudio, job: InJob) -> models.JobState:
    (studio.films if job.kind == "film" else studio.jobs).cancel(job)
    return told(job)


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
