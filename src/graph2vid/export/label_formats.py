"""Labels for training: Create ML's action annotations, and subtasks as LeRobot's annotation tool keeps them."""

from __future__ import annotations

import json

from graph2vid.export import shared
from graph2vid.grounding import Exported, Film, Grounding, file_name


@shared.format_named("createml", ".createml.json", "video")
def export_createml(grounding: Grounding, film: Film) -> Exported:
    """Write an entry per segment: video (its file name), label, start and end (seconds).

    For ``MLActionClassifier.DataSource.directoryWithVideosAndAnnotation`` with the columns of these names.
    """
    segments, notes = shared.timed(grounding)
    names = shared.labels(grounding.flow)
    if not film.name:
        notes.append("the video is not known: Create ML looks for it by its name; give it with --video")
    entries = [
        {"video": file_name(film.name), "label": names[one.step], "start": one.start / 1000, "end": one.end / 1000}
        for one in segments
    ]
    return Exported(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", tuple(notes))


@shared.format_named("lerobot", ".lerobot.json")
def export_lerobot(grounding: Grounding, film: Film) -> Exported:
    """Write the subtasks (start, end, label) of an episode, as version 1 of ``meta/lerobot_annotations.json``."""
    segments, notes = shared.timed(grounding)
    names = shared.titles(grounding.flow)
    subtasks = [{"start": one.start / 1000, "end": one.end / 1000, "label": names[one.step]} for one in segments]
    notes.append("the episode is called 0: give it the number that it has in the dataset")
    episode = {"episode_index": 0, "subtasks": subtasks, "high_levels": []}
    document = {"version": 1, "episodes": {"0": episode}}
    return Exported(json.dumps(document, indent=2, ensure_ascii=False) + "\n", tuple(notes))
