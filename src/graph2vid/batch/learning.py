"""The first pass of ``batch --adapt``: a task model of each procedure, learnt from the transcripts of its rows."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace
from pathlib import Path

from graph2vid.batch.aligning import grounding_options
from graph2vid.batch.batches import tables
from graph2vid.batch.columns import FILES
from graph2vid.batch.rows import Row, decode, learnt_with, procedure_of, row_digests, with_files
from graph2vid.batch.settings import Context
from graph2vid.errors import Graph2VidError
from graph2vid.evidence import Cache, Transcript, transcript_of
from graph2vid.grounding import adapt


def learn_models(rows: Path, context: Context, folder: Path) -> dict[str, str]:
    """Learn a task model from all rows of each procedure; return their paths by what the rows have in common.

    A model is kept under a name that stands for all that it is learnt from, so that a run that goes on finds it. A
    procedure that cannot be learnt about keeps the general evidence.

    Parameters
    ----------
    rows : path
        The rows of the manifest (Parquet).
    context : Context
    folder : path
        Where the models are written.
    """
    members: dict[str, list[Row]] = {}
    digests: dict[str, list[bytes]] = {}
    for table in tables(rows):
        some = [row for row in decode(table, context) if row.id not in context.problems]
        for row, digest in zip(some, row_digests(some, context), strict=True):
            key = learnt_with(row)
            if key is not None:
                members.setdefault(key, []).append(row)
                digests.setdefault(key, []).append(digest)
    found = {}
    for key, of_key in members.items():
        name = hashlib.sha256(b"".join(sorted(digests[key]))).hexdigest()[:32]
        path = folder.resolve() / f"{name}.safetensors"
        if not path.exists():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _learn(of_key, context, path)
            except Graph2VidError as error:
                warnings.warn(f"no task model is learnt from {of_key[0].id!r} and others: {error}", stacklevel=2)
                continue
        found[key] = str(path)
    return found


def _learn(rows: list[Row], context: Context, path: Path) -> None:
    options = with_files(rows[0].options, context.folder)
    asked, cache = grounding_options(options).evidence, Cache(context.cache)
    flow, tsort = procedure_of(rows[0].procedure, options["parser"], context.folder, context.cache)
    transcripts: list[Transcript] = []
    for row in rows:
        media = [str(Path(context.folder) / row.inputs[name]) for name in FILES if name in row.inputs]
        video, captions = media if len(media) == 2 else (media[0], None)
        try:
            found = transcript_of(video, captions, asked, cache=cache)
        except Graph2VidError:  # the second pass says so
            continue
        transcripts.append(replace(found, duration=row.options.get("duration", found.duration)))
    adapt(tsort or flow, transcripts, cache=cache, **vars(asked)).save(path)
