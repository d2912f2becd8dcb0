"""What the routes of the API share: what they are about, what they take, how they refuse."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi import Path as FromPath
from fastapi.responses import JSONResponse

from graph2vid.errors import InputError
from graph2vid.studio import models
from graph2vid.studio.projects import Project
from graph2vid.studio.service import Studio

REFUSED: dict[int | str, dict[str, Any]] = {
    404: {"model": models.Problem, "description": "There is no such thing"},
    422: {"model": models.Problem, "description": "Not usable, and why"},
}
"""How every route may refuse."""


class TooMuchError(InputError):
    """More was sent than is taken."""


class WrongKindError(InputError):
    """A file is not of a kind that is taken."""


class StaleError(InputError):
    """Something has changed since the sender looked at it."""


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

FileName = Annotated[str, Query(max_length=300, description="The name of the file; its suffix says what it is")]
Revision = Annotated[
    int | None, Query(description="With it the request is refused (409) if the graph has changed since")
]
STALE: dict[int | str, dict[str, Any]] = {409: {"model": models.Problem, "description": "It has changed meanwhile"}}


def check_revision(project: Project, seen: int | None) -> None:
    """Refuse what was meant for another state of the graph than the present one."""
    if seen is not None and seen != project.history.revision:
        raise StaleError("the graph has been changed elsewhere meanwhile: look at it again")


RAW = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def body_of(request: Request, most: int) -> bytes:
    """Return what was sent, up to a limit."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise TooMuchError(f"this is larger than {most >> 20} MiB")
    return bytes(data)


def error_response(status: int, message: str) -> JSONResponse:
    """Return an error as the API gives it."""
    return JSONResponse({"error": " ".join(message.split())}, status)
