"""The routes of the API about projects, procedures and flow graphs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from graph2vid import __version__
from graph2vid.grounding import FORMATS
from graph2vid.sample import NarratedFiles
from graph2vid.studio import models
from graph2vid.studio.asking import (
    RAW,
    REFUSED,
    STALE,
    FileName,
    InProject,
    InStudio,
    Revision,
    body_of,
    check_revision,
)
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import Replace
from graph2vid.studio.places import CAPTION_SUFFIXES, VIDEO_SUFFIXES
from graph2vid.studio.projects import Media, UnknownError
from graph2vid.studio.service import flow_from_file, summary
from graph2vid.text import PARSERS, procedure_from_bytes
from graph2vid.text.reading.tidy import decoded

MOST_TEXT = 1 << 20
"""Bytes of a procedure or flow graph that is handed in."""

router = APIRouter(prefix="/api", responses=REFUSED)


@router.get("/about", summary="What this studio is and can do")
def about(studio: InStudio) -> models.About:
    return models.About(
        version=__version__,
        parsers=list(PARSERS),
        formats={name: FORMATS.get(name).suffix for name in FORMATS},
        videos=studio.videos is not None,
        upload_limit=studio.upload_limit,
        suffixes={"video": list(VIDEO_SUFFIXES), "captions": list(CAPTION_SUFFIXES)},
    )


@router.get("/projects", summary="All projects, the one changed last first")
def projects(studio: InStudio) -> list[models.ProjectSummary]:
    return [summary(project) for project in studio.projects]


@router.post("/projects", status_code=201, summary="Make a project")
def create(studio: InStudio, wanted: models.NewProject) -> models.ProjectState:
    return models.ProjectState(**studio.state(studio.projects.create(wanted.title.strip())))


@router.post("/projects/sample", status_code=201, summary="Make a project with the bundled recipe and video")
def create_sample(studio: InStudio) -> models.ProjectState:
    files = NarratedFiles()
    text = files.text.read_text(encoding="utf-8")
    video, captions = (Media("sample", path.name) for path in (files.video, files.captions))
    project = studio.projects.create(text.splitlines()[0], text, video=video, captions=captions)
    return models.ProjectState(**studio.state(project))


@router.get("/projects/{project}", summary="All about a project")
def state(studio: InStudio, project: InProject) -> models.ProjectState:
    return models.ProjectState(**studio.state(project))


@router.patch("/projects/{project}", summary="Change title, media and settings")
def change(studio: InStudio, project: InProject, wanted: models.ProjectChange) -> models.ProjectState:
    changes: dict[str, Any] = {
        key: getattr(wanted, key)
        for key in wanted.model_fields_set & {"title", "embedder", "clip_seconds"}
        if getattr(wanted, key) is not None
    }
    for kind in ("video", "captions"):
        if kind in wanted.model_fields_set:
            changes[kind] = studio.choose(project, getattr(wanted, kind), kind)
    project.change(**changes)
    return models.ProjectState(**studio.state(project))


@router.delete("/projects/{project}", status_code=204, summary="Delete a project and all its files")
def delete(studio: InStudio, project: InProject) -> None:
    job = studio.jobs.of(project)
    if job is not None:
        studio.jobs.cancel(job)
    studio.projects.delete(project.name)


@router.put("/projects/{project}/procedure", summary="Write the procedure: text, Markdown, a web page or JSON-LD",
            openapi_extra=RAW)  # fmt: skip
async def write_procedure(
    studio: InStudio, project: InProject, request: Request, name: FileName = ""
) -> models.ProjectState:
    data = await body_of(request, MOST_TEXT)

    def write() -> dict[str, Any]:
        source = name or "the procedure"
        if data.strip():
            procedure_from_bytes(data, source=source)  # says what is wrong with it
        project.procedure = decoded(data, source)
        return studio.state(project)

    return models.ProjectState(**await run_in_threadpool(write))


@router.post("/projects/{project}/parse", status_code=202, summary="Find the flow graph of the procedure (a job)")
def parse(studio: InStudio, project: InProject, wanted: models.ParseRequest) -> models.JobState:
    PARSERS.get(wanted.parser)
    return models.JobState(**studio.parse(project, wanted.parser).to_json())


@router.get("/projects/{project}/flow", summary="The flow graph, as `graph2vid parse -o` writes it")
def flow(project: InProject) -> dict[str, Any]:
    if project.draft is None:
        raise UnknownError("there is no flow graph yet")
    return project.draft.to_json()


@router.put("/projects/{project}/flow", summary="Put a flow graph in place: .json, .flow, .txt, .dot or .gv",
            openapi_extra=RAW)  # fmt: skip
async def write_flow(studio: InStudio, project: InProject, request: Request, name: FileName) -> models.FlowState:
    data = await body_of(request, MOST_TEXT)

    def write() -> dict[str, Any]:
        draft = Draft(flow_from_file(data, name))
        with project.lock:
            project.history = project.history.edited(Replace(op="replace", source=name, flow=draft.to_json()))
            if not project.about.title and draft.flow.title:
                project.change(title=draft.flow.title[:200])
            return studio.flow_state(project.history)

    return models.FlowState(**await run_in_threadpool(write))


@router.post("/projects/{project}/edits", summary="Edit the flow graph", responses=STALE)
def edit(studio: InStudio, project: InProject, wanted: models.EditRequest) -> models.FlowState:
    with project.lock:
        check_revision(project, wanted.revision)
        project.history = project.history.edited(wanted.edit)
        return models.FlowState(**studio.flow_state(project.history))


@router.post("/projects/{project}/undo", summary="Undo the last edit", responses=STALE)
def undo(studio: InStudio, project: InProject, revision: Revision = None) -> models.FlowState:
    with project.lock:
        check_revision(project, revision)
        project.history = project.history.undone()
        return models.FlowState(**studio.flow_state(project.history))


@router.post("/projects/{project}/redo", summary="Redo what was undone last", responses=STALE)
def redo(studio: InStudio, project: InProject, revision: Revision = None) -> models.FlowState:
    with project.lock:
        check_revision(project, revision)
        project.history = project.history.redone()
        return models.FlowState(**studio.flow_state(project.history))
