"""The routes of projects of many videos: the list, grounding all, and learning from what was checked."""

from __future__ import annotations

from graph2vid.errors import InputError
from graph2vid.studio import corpus, models
from graph2vid.studio.asking import BUSY, InProject, InStudio, InTake, new_router, told

router = new_router()


@router.get("/projects/{project}/videos", summary="The videos of a project, where to correct next, what was learnt")
def videos(studio: InStudio, project: InProject) -> models.Corpus:
    return corpus.corpus(studio, project)


@router.post("/projects/{project}/videos", status_code=201, summary="Add a video of the same procedure")
def add_video(studio: InStudio, project: InProject, wanted: models.NewVideo) -> models.VideoName:
    chosen = [studio.choose(project, getattr(wanted, kind), kind) for kind in ("video", "captions")]
    if not any(chosen):
        raise InputError("name a video, its captions, or both")
    take = project.add_video(*chosen)
    return models.VideoName(id=take.id, title=take.title)


@router.delete("/projects/{project}/videos", status_code=204, summary="Take a video out of a project, with its results")
def remove_video(take: InTake) -> None:
    take.project.remove_video(take.id)


@router.put("/projects/{project}/checked", summary="Say that all of a video is right now, or take that back")
def check_video(studio: InStudio, take: InTake, wanted: models.CheckedMark) -> models.ProjectState:
    corpus.check_video(take.project, take, wanted.checked)
    return studio.state(take)


@router.post("/projects/{project}/ground-all", status_code=202,
             summary="Ground all videos without a result, or with an outdated one (a job)", responses=BUSY)  # fmt: skip
def ground_all(studio: InStudio, project: InProject) -> models.JobState:
    return told(corpus.ground_all(studio, project))


@router.post("/projects/{project}/learn", status_code=202,
             summary="Learn from the checked videos, and ground the others with that (a job)",
             responses=BUSY)  # fmt: skip
def learn(studio: InStudio, project: InProject) -> models.JobState:
    return told(corpus.learn(studio, project))
