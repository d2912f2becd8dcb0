"""The routes of videos and captions: what can be chosen, what is handed in, what is played."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from fastapi import Request
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from graph2vid.errors import InputError
from graph2vid.evidence import read_captions
from graph2vid.studio import film, models, places
from graph2vid.studio.asking import (
    BUSY,
    RAW,
    InProject,
    InStudio,
    InTake,
    TooMuchError,
    WrongKindError,
    new_router,
    refused,
)
from graph2vid.studio.projects import Media, UnknownError

_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".webm": "video/webm",
    ".mkv": "video/x-matroska",
    ".ogv": "video/ogg",
    ".avi": "video/x-msvideo",
}

router = new_router()


@router.get("/projects/{project}/media", summary="Videos and captions that can be chosen")
def media(studio: InStudio, project: InProject) -> list[models.MediaFile]:
    return list(studio.media(project))


@router.put("/projects/{project}/media/{name}", status_code=201, summary="Hand in a video or captions",
            openapi_extra=RAW,
            responses=refused(_413="Too large", _415="Not a video, nor captions"))  # fmt: skip
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
        gone = Media("upload", name)
        for take in project.takes:
            used = zip(("video", "captions"), take.media, strict=True)
            take.choose(**{key: None for key, media in used if media == gone})
        path.unlink()


@router.get("/projects/{project}/video", summary="The video that is chosen; ranges are served",
            response_class=FileResponse)  # fmt: skip
def video(studio: InStudio, take: InTake) -> FileResponse:
    return _played(studio.video(take, of_result=False))


@router.get("/projects/{project}/result/video", summary="The video of the result; ranges are served",
            response_class=FileResponse)  # fmt: skip
def result_video(studio: InStudio, take: InTake) -> FileResponse:
    return _played(studio.video(take, of_result=True))


@router.get("/projects/{project}/still", summary="A still of the video (JPEG)", response_class=FileResponse)
def still(studio: InStudio, take: InTake) -> FileResponse:
    return _picture(film.still(studio, take))


@router.get("/projects/{project}/film", summary="Small pictures and the waveform of the video, or how far they are")
def film_state(studio: InStudio, take: InTake) -> models.Film:
    return film.film(studio, take, start=False)


@router.post("/projects/{project}/film", summary="Make small pictures and the waveform, if they are not there (a job)",
             responses=BUSY)  # fmt: skip
def make_film(studio: InStudio, take: InTake) -> models.Film:
    return film.film(studio, take, start=True)


@router.get("/projects/{project}/film/strip", summary="The small pictures side by side (JPEG)",
            response_class=FileResponse)  # fmt: skip
def film_strip(studio: InStudio, take: InTake) -> FileResponse:
    return _picture(film.strip(studio, take))


def _picture(path: Path) -> FileResponse:
    return FileResponse(path, media_type="image/jpeg", headers={"cache-control": "private, max-age=60"})


def _played(path: Path) -> FileResponse:
    kind = _TYPES.get(path.suffix.lower(), "application/octet-stream")
    return FileResponse(path, media_type=kind, headers={"cache-control": "private, no-cache"})
