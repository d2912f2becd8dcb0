"""Pictures of a video without playing it: a still for lists, small pictures and a waveform under the axis.

They are made once for each file and kept in the project: ``film/KEY/``, where the key stands for the file as it is.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph2vid._files import read_json, write_bytes
from graph2vid.errors import Graph2VidError
from graph2vid.evidence import probe
from graph2vid.footage import sharpest_frame, to_jpeg
from graph2vid.studio import models, work
from graph2vid.studio.jobs import Job
from graph2vid.studio.projects import Project, Take, UnknownError
from graph2vid.studio.service import Studio

_STILL, _STILL_WIDTH = "still.jpg", 320


def _folder(studio: Studio, take: Take) -> tuple[Path, Path]:
    """Return the video, and the folder of what is made of it."""
    path = studio.video(take, of_result=False)
    about = path.stat()
    source = f"{path}\0{about.st_mtime_ns}\0{about.st_size}"
    key = hashlib.sha256(source.encode(errors="surrogateescape")).hexdigest()[:20]
    return path, take.project.file(f"film/{key}")


def still(studio: Studio, take: Take) -> Path:
    """Return a still of a video (JPEG); it is made the first time."""
    path, folder = _folder(studio, take)
    made = folder / _STILL
    if not made.is_file():
        try:
            length = probe(path).duration
            _, image = sharpest_frame(path, 0.3 * length, 0.3 * length + 2.0, most=6)
        except Graph2VidError as error:
            raise UnknownError(
                f"there is no picture of {path.name}: {str(error).replace(str(path), path.name)}"
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(made, to_jpeg(image, width=_STILL_WIDTH))
    return made


def strip(studio: Studio, take: Take) -> Path:
    """Return the small pictures side by side (JPEG)."""
    made = _folder(studio, take)[1] / work.STRIP
    if not made.is_file():
        raise UnknownError("there are no small pictures of this video yet")
    return made


def film(studio: Studio, take: Take, start: bool) -> models.Film:
    """Return what is drawn under the axis, or the job that makes it; with ``start`` it is begun where need be."""
    path, folder = _folder(studio, take)
    with suppress(Graph2VidError):
        return models.Film(**_read(folder), job=None)
    owner = (take.project.name, folder.name)
    job = studio.films.of(owner)
    if start and (job is None or job.is_over):
        job = _start(studio, take.project, owner, path, folder)
    return models.Film(job=None if job is None else models.JobState(**job.to_json()))


def _read(folder: Path) -> dict[str, Any]:
    found = read_json(folder / work.FILM)
    return found if isinstance(found, dict) else {}


def _start(studio: Studio, project: Project, owner: tuple[str, str], path: Path, folder: Path) -> Job:
    output = project.folder / f".job-{uuid4().hex}"

    def finish(made: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (work.STRIP, work.FILM):  # the second says that both are there
            if (made / name).is_file():
                (made / name).replace(folder / name)

    def note(state: str, _: str) -> None:
        if state != "running":
            shutil.rmtree(output, ignore_errors=True)

    order = {"video": str(path), "output": str(output)}
    return studio.films.start(Job("film", project.name, owner, order, finish, note))
