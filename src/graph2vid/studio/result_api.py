"""The routes of results: grounding, checks, corrections, annotations and exports."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from graph2vid._files import read_json
from graph2vid._values import repaired
from graph2vid.errors import InputError
from graph2vid.grounding import FORMATS, Exported, Grounding, export
from graph2vid.report import page, view_model
from graph2vid.studio import models, places, work
from graph2vid.studio.annotating import imported
from graph2vid.studio.asking import (
    BUSY,
    RAW,
    STALE,
    FileName,
    InProject,
    InStudio,
    InTake,
    StaleError,
    Words,
    attachment,
    body_of,
    new_router,
    told,
)
from graph2vid.studio.corrections import with_correction
from graph2vid.studio.projects import Take, UnknownError
from graph2vid.studio.service import Studio, correction_of
from graph2vid.studio.work import in_words

router = new_router()


@router.post("/projects/{project}/ground", status_code=202, summary="Ground the video (a job)",
             responses=BUSY)  # fmt: skip
def ground(studio: InStudio, take: InTake) -> models.JobState:
    return told(studio.ground(take))


@router.get("/projects/{project}/result", summary="The grounding, as `graph2vid ground -o` writes it")
def result(studio: InStudio, take: InTake) -> dict[str, Any]:
    studio.result(take)
    return read_json(take.results()[0][1])  # type: ignore[no-any-return]


@router.post("/projects/{project}/check", status_code=202,
             summary="Say where the video does not follow the procedure (a job)", responses=BUSY)  # fmt: skip
def check(studio: InStudio, take: InTake) -> models.JobState:
    return told(studio.check(take))


@router.get("/projects/{project}/check", summary="What the check found, as `graph2vid check --json` writes it")
def checked(studio: InStudio, take: InTake) -> dict[str, Any]:
    if (found := studio.checked(take)) is None:
        raise UnknownError("this result has not been checked yet")
    return found


def _with_video(studio: Studio, take: Take) -> Grounding:
    """Return the grounding of a project with the path of its video, if that still is there."""
    grounding = studio.result(take)
    with contextlib.suppress(InputError):
        grounding = replace(grounding, video=str(studio.video(take, of_result=True)))
    return grounding


def _exported(studio: Studio, take: Take, format: str) -> Exported:
    made = export(_with_video(studio, take), format)
    return replace(made, text=repaired(made.text), notes=tuple(map(repaired, made.notes)))


def _file_stem(take: Take) -> str:
    """Return the name of a file to save, without its suffix: the project's, and the video's where there are several."""
    video = places.project_name(Path(take.title).stem)
    return f"{take.project.name}-{video}" if len(take.project.about.videos) > 1 else take.project.name


def _by_name(grounding: Grounding) -> Grounding:
    """Return it with the mere name of the video: where that lies is nobody's concern."""
    return replace(grounding, video=grounding.video and repaired(Path(grounding.video).name))


@router.get("/projects/{project}/view", summary="The grounding as the result view draws it")
def view(studio: InStudio, take: InTake) -> dict[str, Any]:
    grounding = _with_video(studio, take)
    query = f"?video={take.id}" if take.id else ""
    url = f"/api/projects/{take.project.name}/result/video{query}" if grounding.video else None
    beside = studio.beside(take, grounding)
    return view_model(_by_name(grounding), **beside, video_url=url, numbers=studio.numbers(take.project))


@router.get("/projects/{project}/corrections", summary="What a person knows about the video")
def corrections(studio: InStudio, take: InTake) -> list[models.CorrectionState]:
    return studio.correction_states(take)


@router.post("/projects/{project}/corrections", status_code=201,
             summary="Add a correction; one that contradicts another is refused, and names that")  # fmt: skip
def correct(studio: InStudio, take: InTake, wanted: models.NewCorrection) -> list[models.CorrectionState]:
    with take.lock:
        draft = take.project.draft
        new = correction_of(wanted, take.project)
        take.correct(with_correction(take.corrections, new, None if draft is None else draft.flow))
        return corrections(studio, take)


@router.delete("/projects/{project}/corrections/{number}", summary="Take a correction back, by its place in the list",
               responses=STALE)  # fmt: skip
def uncorrect(studio: InStudio, take: InTake, number: int, words: Words = None) -> list[models.CorrectionState]:
    with take.lock:
        known = take.corrections
        if not 0 <= number < len(known):
            raise UnknownError(f"there is no correction {number}")
        if words is not None and words != known[number].words:
            raise StaleError("the corrections have been changed elsewhere meanwhile: look at them again")
        take.correct((*known[:number], *known[number + 1 :]))
        return corrections(studio, take)


@router.get("/projects/{project}/export/{format}", summary="The grounding in another format",
            response_class=Response)  # fmt: skip
def exported(studio: InStudio, take: InTake, format: str) -> Response:
    made = _exported(studio, take, format)
    headers = attachment(f"{_file_stem(take)}{FORMATS.get(format).suffix}")
    if made.notes:
        headers["x-graph2vid-notes"] = quote("\n".join(made.notes))
    return Response(made.text, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/projects/{project}/report", summary="The report: one self-contained page", response_class=Response)
def report(
    studio: InStudio,
    take: InTake,
    embed: Annotated[bool, Query(description="Put the video into the page")] = False,
) -> Response:
    grounding = _with_video(studio, take)
    shown = grounding if embed else _by_name(grounding)
    try:
        made = page(shown, **studio.beside(take, grounding), embed_video=embed)
    except InputError as error:
        name = _by_name(grounding).video
        raise InputError(in_words(str(error).replace(str(grounding.video), str(name)))) from None
    return Response(
        repaired(made), media_type="text/html; charset=utf-8", headers=attachment(f"{_file_stem(take)}.html")
    )


@router.post("/projects/{project}/clips", status_code=202, summary="Cut a clip and a still of each step (a job)",
             responses=BUSY)  # fmt: skip
def cut_clips(studio: InStudio, take: InTake) -> models.JobState:
    return told(studio.clips(take))


@router.get("/projects/{project}/clips", summary="The clips and stills that were cut last (.zip)",
            response_class=FileResponse)  # fmt: skip
def clips(take: InTake) -> FileResponse:
    path = take.file(work.CLIPS)
    if not path.is_file():
        raise UnknownError("no clips were cut yet")
    return FileResponse(path, media_type="application/zip", headers=attachment(f"{_file_stem(take)}-clips.zip"))


# -- annotations made elsewhere ------------------------------------------------------------------------------------


@router.put("/projects/{project}/annotations", openapi_extra=RAW,
            summary="Read annotations as corrections: ELAN (.eaf), a table (.csv), Label Studio (.json)")  # fmt: skip
async def import_annotations(
    take: InTake,
    request: Request,
    name: FileName,
    several: Annotated[
        bool, Query(description="The file is about the videos that it names, not about this one")
    ] = False,
) -> models.Imported:
    data = await body_of(request)
    return await run_in_threadpool(imported, take, data, name, several)


@router.get("/projects/{project}/exports/{format}", summary="The groundings of all videos in another format (.zip)",
            response_class=Response)  # fmt: skip
def exported_all(studio: InStudio, project: InProject, format: str) -> Response:
    suffix = FORMATS.get(format).suffix
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        names: Counter[str] = Counter()
        for take in project.takes:
            if take.results():
                stem = places.project_name(Path(take.title).stem)
                names[stem] += 1
                number = f"-{names[stem]}" if names[stem] > 1 else ""
                archive.writestr(f"{stem}{number}{suffix}", _exported(studio, take, format).text)
        if not names:
            raise UnknownError("there is no result yet: ground the videos first")
    return Response(held.getvalue(), media_type="application/zip", headers=attachment(f"{project.name}-{format}.zip"))
