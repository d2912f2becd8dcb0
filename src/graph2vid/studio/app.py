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
from graph2vid.errors import Graph2VidError, MissingDependencyError
from graph2vid.report import STATIC as VIEW
from graph2vid.studio import media_api, projects_api, results_api
from graph2vid.studio.access import Access, Guard
from graph2vid.studio.asking import StaleError, TooMuchError, WrongKindError, error_response
from graph2vid.studio.jobs import BusyError, Jobs
from graph2vid.studio.places import OutsideError
from graph2vid.studio.projects import Projects, UnknownError
from graph2vid.studio.service import Studio

STATIC = Path(__file__).parent / "static"

UPLOAD_LIMIT = 4 << 30
"""Bytes of a video that is handed in, by default."""

_UPLOADS = re.compile(r"/api/projects/[^/]+/media/[^/]+")
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownError, 404),
    (OutsideError, 404),
    (StaleError, 409),
    (BusyError, 429),
    (TooMuchError, 413),
    (WrongKindError, 415),
    (MissingDependencyError, 501),
    (Graph2VidError, 422),
)


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
    studio = Studio(Projects(folder), jobs or Jobs(), videos and videos.resolve(), upload_limit)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        studio.jobs.close()
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
    for part in (projects_api, media_api, results_api):
        app.include_router(part.router)
    app.add_exception_handler(Exception, _tell)
    for kind in (Graph2VidError, OSError, RequestValidationError, HTTPException, ClientDisconnect):
        app.add_exception_handler(kind, _tell)

    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    app.mount("/view", StaticFiles(directory=VIEW), name="view")
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, access=access or Access(), is_upload=_is_upload)
    return app


def _is_upload(method: str, path: str) -> bool:
    return method == "PUT" and _UPLOADS.fullmatch(path) is not None


def _tell(_: Request, error: Exception) -> JSONResponse:
    """Tell an error in one line, with the status that goes with it."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return error_response(422, f"{where}: {first['msg']}" if where else first["msg"])
    if isinstance(error, HTTPException):
        return error_response(error.status_code, str(error.detail))
    if isinstance(error, ClientDisconnect):
        return error_response(400, "the rest did not come")
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return error_response(status, str(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error_response(507, "the disk is full: nothing was changed")
    if isinstance(error, FileNotFoundError):
        return error_response(404, "it has been deleted meanwhile")
    if isinstance(error, OSError):
        return error_response(500, f"{error.strerror or error}")
    return error_response(500, f"{type(error).__name__}: {error} (this is a defect)")
