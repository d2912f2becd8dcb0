"""YouCook2: cooking videos, each with its own step sentences, and captions as evidence.

``annotations.json`` maps a video to its duration and its annotations (segment in seconds, sentence), in the flat form
or as released (under ``"database"``, with ``"subset"``); ``captions/VIDEO.vtt`` or ``.srt``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from graph2vid._files import read_json
from graph2vid.datasets.caption_folder import Narration, NarrationOptions, caption_file, caption_files, clips_to_cover
from graph2vid.datasets.dataset import Dataset, Recording, Split, Task
from graph2vid.datasets.reader_tools import (
    Trouble,
    annotation,
    as_number,
    data_folder,
    entry,
    reader,
)
from graph2vid.errors import FormatError
from graph2vid.evidence import read_captions


@reader("youcook2", NarrationOptions)
def load(data: Path, options: NarrationOptions, trouble: Trouble) -> Dataset:
    """Read YouCook2.

    Parameters
    ----------
    data : path
        The folder with ``annotations.json``, or one that has it in ``youcook2_narrated/``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset, embedder, narration, label_rule, label_overlapping
        See :class:`graph2vid.datasets.caption_folder.NarrationOptions`.

    Returns
    -------
    Dataset
        Each video is a task of its own, whose procedure is its sentences in the order in which they are
        annotated (mostly that of the video); the flow graph of such a text is the chain.
    """
    place = data_folder(data, "youcook2_narrated", "annotations.json", "the step sentences of each video")
    path, captions = place / "annotations.json", place / "captions"
    document = read_json(path)
    videos = document.get("database", document) if isinstance(document, dict) else None
    if not isinstance(videos, dict):
        raise FormatError(f"{path} should map each video to its annotations")
    files = caption_files(captions)
    tasks: dict[str, Task] = {}
    source = Narration(files, tasks, options.embedder, options.narration)
    recordings = []
    for video, record in videos.items():
        with trouble.passing():
            task, recording = _read_video(video, record, path, options)
            said = read_captions(caption_file(files, video, captions))
            if "duration" not in record:
                length = max([*(cue.end for cue in said), *(row.end for row in recording.annotations)])
                recording = replace(recording, n_clips=clips_to_cover(length - options.offset, options.clip_seconds))
            tasks[video] = task
            recordings.append(recording)
    trouble.refuse_nothing_left(recordings, path)
    trouble.remark_overlaps(recordings, lambda recording: f"{path}, video {recording.id}", options)
    return trouble.dataset(
        "youcook2",
        options,
        tasks=tasks,
        recordings=tuple(recordings),
        splits=_splits(recordings),
        evidence=source,
        options=options.told,
    )


def _read_video(video: str, record: Any, path: Path, options: NarrationOptions) -> tuple[Task, Recording]:
    where = f"{path}, video {video}"
    rows = entry(record, "annotations", list, where)
    if not rows:
        raise FormatError(f"{where} has no procedure: there are no annotations")
    duration = as_number(record["duration"], where, "the duration") if "duration" in record else None
    sentences, annotations = [], []
    for step, row in enumerate(rows):
        here = f"{where}, annotation {step}"
        sentences.append(entry(row, "sentence", str, here))
        segment = entry(row, "segment", list, here)
        if len(segment) != 2:
            raise FormatError(f"{here}: a segment is a start and an end, not {segment!r}")
        start, end = (as_number(value, here, "a segment's end") for value in segment)
        annotations.append(annotation(step, start, end, here, duration, max(1.0, options.clip_seconds)))
    texts = tuple(sentences)
    title = str(record.get("dish") or record.get("recipe_type") or video)
    task = Task(video, title, texts, texts, tuple((step,) for step in range(len(texts))))
    length = duration if duration is not None else max(row.end for row in annotations)
    notes = {"video": video, "recipe_type": record.get("recipe_type"), "subset": record.get("subset")}
    n_clips = clips_to_cover(length - options.offset, options.clip_seconds)
    return task, Recording(video, video, options.clip_seconds, options.offset, n_clips, tuple(annotations), notes)


def _splits(recordings: list[Recording]) -> tuple[Split, ...]:
    """Return the split into training and other videos, where the annotations say which is which."""
    train = tuple(recording.id for recording in recordings if recording.notes["subset"] == "training")
    test = tuple(recording.id for recording in recordings if recording.notes["subset"] not in ("training", None))
    return (Split("subset", train, test),) if train and test else ()
