"""What the routes of the API share: whom they ask, how they refuse, what they are sent."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as FromPath

from graph2vid.errors import InputError
from graph2vid.studio import models
from graph2vid.studio.jobs import Job
from graph2vid.studio.projects import Project, Take, UnknownError
from graph2vid.studio.service import Studio

MOST_TEXT = 1 << 20
"""Bytes of a procedure, a flow graph or annotations that are handed in."""


class TooMuchError(InputError):
    """More was sent than is taken."""

    status = 413


class WrongKindError(InputError):
    """A file is not of a kind that is taken."""

    status = 415


class StaleError(InputError):
    """Something has changed since the sender looked at it."""

    status = 409


def refused(**reasons: str) -> dict[int | str, dict[str, Any]]:
    """Return how a route may refuse, by status: ``_404="There is no such thing"``."""
    return {int(status[1:]): {"model": models.Problem, "description": why} for status, why in reasons.items()}


STALE = refused(_409="It has changed meanwhile")
BUSY = refused(_429="Too many jobs wait, or this project has one already")
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
RAW = {"requestBody": {"required": True, "content": _BYTES}}


def new_router() -> APIRouter:
    """Return a router of the API, to which routes are added."""
    usual = refused(_400="Damaged, or only part of it came", _404="There is no such thing", _422="Not usable, and why")
    return APIRouter(prefix="/api", responses=usual)


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


def take_of(
    project: InProject,
    video: Annotated[str, Query(max_length=64, description="The id of one of its videos; empty: the first")] = "",
) -> Take:
    """Return the video of the project that the query names."""
    return project.take(video)


InTake = Annotated[Take, Depends(take_of)]


def job_of(studio: InStudio, job: str) -> Job:
    """Return the job that the path names."""
    if (found := studio.jobs.get(job) or studio.films.get(job)) is None:
        raise UnknownError(f"there is no job {job[:80]!r}")
    return found


InJob = Annotated[Job, Depends(job_of)]
FileName = Annotated[str, Query(max_length=300, description="The name of the file; its suffix says what it is")]
Revision = Annotated[
    int | None, Query(description="With it the request is refused (409) if the graph has changed since")
]
ProcedureRevision = Annotated[
    int | None,
    Query(description="`procedure_revision`: with it the request is refused (409) if the procedure has changed since"),
]
Words = Annotated[str | None, Query(description="Its words: with them it is refused (409) if another stands there now")]


def told(job: Job) -> models.JobState:
    return models.JobState(**job.to_json())


async def body_of(request: Request) -> bytes:
    """Return the procedure or flow graph that was sent."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_TEXT:
            raise TooMuchError(f"this is larger than {MOST_TEXT >> 20} MiB")
    return bytes(data)


def attachment(name: str) -> dict[str, str]:
    """Return the headers of an answer that is saved as a file."""
    return {"content-disposition": f'attachment; filename="{name}"'}
