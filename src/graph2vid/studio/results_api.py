"""The routes of the API about jobs, results, corrections and exports."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response, StreamingResponse

from graph2vid._files import read_json
from graph2vid.errors import InputError
from graph2vid.grounding import FORMATS, export
from graph2vid.report import page, view_model
from graph2vid.studio import models
from graph2vid.studio.asking import REFUSED, STALE, InProject, InStudio, StaleError
from graph2vid.studio.corrections import with_correction
from graph2vid.studio.jobs import Job
from graph2vid.studio.projects import UnknownError
from graph2vid.studio.service import correction_of

_REFRESH = 0.1  # seconds between two looks at a job

router = APIRouter(prefix="/api", responses=REFUSED)


@router.post("/projects/{project}/ground", status_code=202, summary="Ground the video (a job)")
def ground(studio: InStudio, project: InProject) -> models.JobState:
    return models.JobState(**studio.ground(project).to_json())


def job_of(studio: InStudio, job: str) -> Job:
    """Return the job that the path names."""
    found = studio.jobs.get(job)
    if found is None:
        raise UnknownError(f"there is no job {job[:80]!r}")
    return found


InJob = Annotated[Job, Depends(job_of)]
Words = Annotated[str | None, Query(description="Its words: with them it is refused (409) if another stands there now")]


@router.get("/jobs/{job}", summary="How far a job is")
def job_state(job: InJob) -> models.JobState:
    return models.JobState(**job.to_json())


@router.delete("/jobs/{job}", summary="Cancel a job")
def cancel(studio: InStudio, job: InJob) -> models.JobState:
    studio.jobs.cancel(job)
    return models.JobState(**job.to_json())


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
    found: dict[str, Any] = read_json(project.file("result.json"))
    return found


@router.post("/projects/{project}/check", status_code=202,
             summary="Say where the video does not follow the procedure (a job)")  # fmt: skip
def check(studio: InStudio, project: InProject) -> models.JobState:
    return models.JobState(**studio.check(project).to_json())


@router.get("/projects/{project}/check", summary="What the check found, as `graph2vid check --json` writes it")
def checked(studio: InStudio, project: InProject) -> dict[str, Any]:
    found = studio.checked(project)
    if found is None:
        raise UnknownError("this result has not been checked yet")
    return found


@router.get("/projects/{project}/view", summary="The grounding as the result view draws it")
def view(studio: InStudio, project: InProject) -> dict[str, Any]:
    grounding = studio.result(project)
    url = None
    with contextlib.suppress(InputError):
        name = studio.video(project, of_result=True).name
        grounding, url = replace(grounding, video=name), f"/api/projects/{project.name}/result/video"
    check = studio.check_of(project, grounding.flow)
    return view_model(grounding, compare=studio.compared(project, grounding), check=check, video_url=url)


@router.get("/projects/{project}/corrections", summary="What a person knows about the video")
def corrections(studio: InStudio, project: InProject) -> list[models.CorrectionState]:
    return [models.CorrectionState(**entry) for entry in studio.correction_states(project)]


@router.post("/projects/{project}/corrections", status_code=201,
             summary="Add a correction; it wins over those that it contradicts")  # fmt: skip
def correct(studio: InStudio, project: InProject, wanted: models.NewCorrection) -> list[models.CorrectionState]:
    with project.lock:
        project.corrections = with_correction(project.corrections, correction_of(wanted, project))
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
    grounding = studio.result(project)
    part = FORMATS.get(format)
    with contextlib.suppress(InputError):
        grounding = replace(grounding, video=str(studio.video(project, of_result=True)))
    made = export(grounding, format)
    headers = _attachment(f"{project.name}{part.suffix}")
    if made.notes:
        headers["x-graph2vid-notes"] = quote("\n".join(made.notes))
    return Response(made.text, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/projects/{project}/report", summary="The report: one self-contained page", response_class=Response)
def report(studio: InStudio, project: InProject) -> Response:
    grounding = studio.result(project)
    with contextlib.suppress(InputError):
        grounding = replace(grounding, video=studio.video(project, of_result=True).name)
    check = studio.check_of(project, grounding.flow)
    made = page(grounding, compare=studio.compared(project, grounding), check=check)
    return Response(made, media_type="text/html; charset=utf-8", headers=_attachment(f"{project.name}.html"))


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
