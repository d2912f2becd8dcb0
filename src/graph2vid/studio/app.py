"""The application: the API, the pages, the access, and how errors are told."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from graph2vid import __version__
from graph2vid._values import repaired
from graph2vid.errors import Graph2VidError, MissingDependencyError
from graph2vid.report import STATIC as VIEW
from graph2vid.studio import api, corpus_api, media_api, result_api
from graph2vid.studio.access import Access, Guard
from graph2vid.studio.corrections import ContradictionError
from graph2vid.studio.jobs import Jobs
from graph2vid.studio.projects import Projects
from graph2vid.studio.service import Studio

STATIC = Path(__file__).parent / "static"

UPLOAD_LIMIT = 4 << 30
"""Bytes of a video that is handed in, by default."""

_UPLOADS = re.compile(r"PUT /api/projects/[^/]+/media/[^/]+")


def create_app(
    folder: Path,
    *,
    videos: Path | None = None,
    access: Access | None = None,
    upload_limit: int = UPLOAD_LIMIT,
    jobs: Jobs | None = None,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    folder : Path
        Where the projects are kept.
    videos : Path, optional
        A folder whose videos and captions can be chosen.
    access : Access, optional
        Who may come in; by default this machine, without a token.
    upload_limit : int
        Bytes of a file that is handed in.
    jobs : Jobs, optional
        Who runs jobs.
    """
    jobs = jobs or Jobs()
    films = Jobs(command=jobs.command)
    studio = Studio(Projects(folder), jobs, films, videos and videos.resolve(), upload_limit)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        studio.jobs.close()
        studio.films.close()
        studio.projects.close()

    app = FastAPI(
        title="graph2vid studio",
        version=__version__,
        description="Procedures, their flow graphs, videos, groundings and corrections.",
        docs_url=None,  # their pages load scripts from elsewhere; ours lies in static/docs.html
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=life,
    )
    app.state.studio = studio
    for routes in (api, media_api, result_api, corpus_api):
        app.include_router(routes.router)
    for kind in (Exception, Graph2VidError, OSError, RequestValidationError, HTTPException, ClientDisconnect):
        app.add_exception_handler(kind, _tell)

    for path in ("/", "/docs"):
        app.add_route(path, _page, include_in_schema=False)
    app.mount("/view", StaticFiles(directory=VIEW), name="view")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, access=access or Access(), uploads=_UPLOADS)
    return app


def _page(request: Request) -> FileResponse:
    return FileResponse(STATIC / ("docs.html" if request.url.path == "/docs" else "index.html"))


def _tell(_: Request, error: Exception) -> JSONResponse:
    """Tell an error in one line, with the status that goes with it."""
    message = str(error)
    status: int = getattr(error, "status", 422 if isinstance(error, Graph2VidError) else 500)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        status, message = 422, f"{where}: {first['msg']}" if where else first["msg"]
    elif isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
    elif isinstance(error, ClientDisconnect):
        status, message = 400, "the rest did not come"
    elif isinstance(error, MissingDependencyError):
        status = 501
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        status, message = 507, "the disk is full: nothing was changed"
    elif isinstance(error, FileNotFoundError):
        status, message = 404, "it has been deleted meanwhile"
    elif isinstance(error, OSError):
        message = f"{error.strerror or error}"
    elif status == 500:
        message = f"{type(error).__name__}: {error} (this is a defect)"
    other = {"other": error.other} if isinstance(error, ContradictionError) else {}
    return JSONResponse({"error": repaired(" ".join(message.split())), **other}, status)
