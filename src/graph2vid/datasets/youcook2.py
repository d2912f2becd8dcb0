"""YouCook2: cooking videos, each with its own step sentences, and captions as evidence.

``annotations.json`` maps a video to its duration and its annotations (segment in seconds, sentence), in the flat form
or as released (under ``"database"``, with ``"subset"``); ``captions/VIDEO.vtt`` or ``.srt``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from graph2vid.datasets import reader_tools as tools
from graph2vid.datasets.dataset import Dataset, Recording, Task
from graph2vid.datasets.reader_tools import Narration, NarrationOptions, Trouble, entry
from graph2vid.errors import FormatError


@dataclass(frozen=True)
class YouCook2Options(NarrationOptions):
    """Options of the reader.

    Attributes
    ----------
    shuffle : int or None
        Write the sentences of each video in another order than it shows them, drawn with this seed.
    """

    told: ClassVar[tuple[str, ...]] = (*NarrationOptions.told, "shuffle")

    shuffle: int | None = None


@tools.reader("youcook2", YouCook2Options)
def load(data: Path, options: YouCook2Options, trouble: Trouble) -> Dataset:
    """Read YouCook2.

    Parameters
    ----------
    data : path
        The folder with ``annotations.json``, or one that has it in ``youcook2_narrated/``.
    skip_bad : bool
        Pass over what cannot be used and list it in ``problems``; by default it is an error.
    clip_seconds, offset, embedder, narration, shuffle, label_rule, label_overlapping
        See :class:`YouCook2Options`.

    Returns
    -------
    Dataset
        Each video is a task of its own, whose procedure is its sentences in the order in which they are
        annotated (mostly that of the video); the flow graph of such a text is the chain.
    """
    place = tools.data_folder(data, "youcook2_narrated", "annotations.json", "the step sentences of each video")
    path = place / "annotations.json"
    document = tools.read_document(path, dict, "map each video to its annotations")
    videos = document.get("database", document)
    if not isinstance(videos, dict):
        raise FormatError(f"{path} should map each video to its annotations")
    tasks: dict[str, Task] = {}
    source = Narration(tools.caption_files(place / "captions"), tasks, options.embedder, options.narration)
    read = trouble.each(((video, record, path, source, options) for video, record in videos.items()), _read_video)
    tasks.update({task.id: task for task, _ in read})
    recordings = [recording for _, recording in read]
    of = {recording.id: recording.notes["subset"] for recording in recordings}
    train = [video for video, subset in of.items() if subset == "training"]
    return trouble.dataset(
        recordings,
        path,
        lambda recording: f"{path}, video {recording.id}",
        tasks=tasks,
        splits=tools.split("subset", train, [video for video in of if of[video] not in ("training", None)]),
        evidence=source,
    )


def _read_video(
    video: str, record: Any, path: Path, source: Narration, options: YouCook2Options
) -> tuple[Task, Recording]:
    where = f"{path}, video {video}"
    rows = entry(record, "annotations", list, where)
    if not rows:
        raise FormatError(f"{where} has no procedure: there are no annotations")
    duration = tools.as_number(record["duration"], where, "the duration") if "duration" in record else None
    sentences, annotations = [""] * len(rows), []
    written = np.arange(len(rows))  # the number of each sentence
    if options.shuffle is not None:
        np.random.default_rng([options.shuffle, zlib.crc32(video.encode())]).shuffle(written)
    for step, row in enumerate(rows):
        here = f"{where}, annotation {step}"
        sentences[written[step]] = entry(row, "sentence", str, here)
        segment = entry(row, "segment", list, here)
        if len(segment) != 2:
            raise FormatError(f"{here}: a segment is a start and an end, not {segment!r}")
        start, end = segment
        annotations.append(
            tools.annotation(int(written[step]), start, end, here, duration, max(1.0, options.clip_seconds))
        )
    title = str(record.get("dish") or record.get("recipe_type") or video)
    notes = {"video": video, "recipe_type": record.get("recipe_type"), "subset": record.get("subset")}
    captions = tools.caption_file(source.files, video)
    recording = tools.captioned_recording(video, video, annotations, duration, captions, options, **notes)
    return Task.of_steps(video, title, tuple(sentences)), recording
